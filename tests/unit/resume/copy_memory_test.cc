// Memory of copies: bounded, and used again.

#include "transports/resume/copy_memory.h"

#include <gtest/gtest.h>

#include <cstring>

namespace seto::resume {
namespace {

TEST(CopyMemory, IsBounded) {
  CopyMemory memory(3 * 1024);
  std::byte* const first = memory.take(1024);
  std::byte* const second = memory.take(1025);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr) << "it uses 2,048 bytes";
  EXPECT_EQ(memory.in_use(), 3 * 1024U);
  EXPECT_EQ(memory.take(1), nullptr);
  memory.give_back(first, 1024);
  std::byte* const third = memory.take(700);
  EXPECT_EQ(third, first) << "what came back is used again";
  memory.give_back(second, 1025);
  memory.give_back(third, 700);
  EXPECT_EQ(memory.in_use(), 0U);
}

TEST(CopyMemory, HasTheLongestPayloadAndNoLonger) {
  CopyMemory memory(2 * kLongestPayload);
  std::byte* const longest = memory.take(kLongestPayload);
  ASSERT_NE(longest, nullptr);
  std::memset(longest, 1, kLongestPayload);
  memory.give_back(longest, kLongestPayload);
  for (std::size_t i = 0; i < kLongestPayload; ++i) ASSERT_EQ(filler()[i], std::byte{0});
}

}  // namespace
}  // namespace seto::resume
