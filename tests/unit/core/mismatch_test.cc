#include "src/core/call/mismatch.h"

#include <gtest/gtest.h>

namespace seto {
namespace {

constexpr Mismatch kMismatch{4, 1, 12};

TEST(Mismatch, of_calls_is_read_back) {
  const std::string text = kMismatch.of_calls("all_reduce of 100 float, max", "all_reduce of 100 float, sum");
  EXPECT_EQ(text, "operation 4: rank 1 calls all_reduce of 100 float, max, but rank 12 calls all_reduce of 100 float, sum");
  const std::optional<ReadMismatch> read = read_mismatch(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->mismatch.operation, 4U);
  EXPECT_EQ(read->mismatch.rank, 1);
  EXPECT_EQ(read->mismatch.peer, 12);
  EXPECT_EQ(read->difference, text.substr(13));
}

TEST(Mismatch, of_plans_is_read_back) {
  const std::string text = kMismatch.of_plans("barrier");
  EXPECT_TRUE(text.starts_with("operation 4: ranks 1 and 12 call barrier, but plan it differently: parts, "));
  const std::optional<ReadMismatch> read = read_mismatch(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->mismatch.operation, 4U);
  EXPECT_EQ(read->mismatch.rank, 1);
  EXPECT_EQ(read->mismatch.peer, 12);
}

TEST(Mismatch, is_not_read_from_another_text) {
  for (const char* const text :
       {"", "operation", "operation 4", "operation 4: ", "operation 4: rank 1", "operation 4: rank 1 calls barrier",
        "operation 4: rank 1 calls barrier, but rank ", "operation 4: rank 1 calls barrier, but rank 2",
        "operation 4: rank 99999999999 calls barrier, but rank 2 calls barrier", "operation 4: ranks 1 and 2 call barrier",
        "operation -4: rank 1 calls a, but rank 2 calls b", "operation 99999999999999999999: rank 1 calls a, but rank 2 calls b",
        "operation 4 (barrier): rank 1 calls a, but rank 2 calls b", "operation 4: ranks 1 call barrier, but plan it differently",
        "operation 4: rank 2 rejected its call (count: 0), so the call ends on every rank", "the communicator was aborted"})
    EXPECT_FALSE(read_mismatch(text)) << text;
}

}  // namespace
}  // namespace seto
