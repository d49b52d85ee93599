#include "transports/slots/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/support/sanitizers.h"
#include "transports/slots/layout.h"

namespace seto::slots {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kHead = 4096;

// A segment as the pool sees it: released memory reads as zeros.
struct Memory {
  explicit Memory(std::size_t size, std::size_t limit = ~std::size_t{0})
      : bytes(size),
        pool(
            kHead, size,
            [this](std::size_t, std::size_t bytes_more) {
              populated += bytes_more;
              return Status();
            },
            [this](std::size_t offset, std::size_t bytes_less) {
              std::memset(bytes.data() + offset, 0, bytes_less);
              ++releases;
              return refuses ? failure(Code::unavailable, "no") : Status();
            },
            limit) {}
  std::vector<std::byte> bytes;
  std::size_t populated = 0;
  int releases = 0;
  bool refuses = false;
  Pool pool;
};

TEST(Pool, BoardsOfTenThousandCommunicatorsDoNotGrowIt) {
  Memory memory(1 << 20);
  for (std::uint64_t i = 0; i < support::repetitions(10'000, 1'000); ++i) {
    const std::size_t size = 100'000 + i % 3 * 4096;
    const Result<std::size_t> board = memory.pool.reserve(size);
    const Result<std::size_t> slots = memory.pool.lease(5000);
    ASSERT_TRUE(board.ok()) << i << ": " << board.status().text();
    ASSERT_TRUE(slots.ok()) << i << ": " << slots.status().text();
    std::byte* const begin = memory.bytes.data() + board.value();
    ASSERT_TRUE(std::all_of(begin, begin + size, [](std::byte one) { return one == std::byte{0}; })) << "board " << i;
    std::memset(begin, 0xee, size);
    memory.pool.give_back(slots.value(), 5000);
    memory.pool.give_back_board(board.value(), size);
  }
  EXPECT_EQ(memory.populated, 8192U);
}

TEST(Pool, BoardsHeldAtOnceDoNotOverlap) {
  Memory memory(1 << 20);
  const std::size_t first = memory.pool.reserve(10'000).value();
  const std::size_t second = memory.pool.reserve(10'000).value();
  EXPECT_GE(second, first + 10'000);
  memory.pool.give_back_board(first, 10'000);
  EXPECT_GE(memory.pool.reserve(20'000).value(), second + 10'000) << "a board of another size";
  EXPECT_EQ(memory.pool.reserve(10'000).value(), first);
}

// A peer may read the status lines of a member that has given them back.
TEST(Pool, MemoryOfStatusLinesServesNothingElse) {
  Memory memory(1 << 20);
  const std::size_t board = memory.pool.reserve(10'000).value();
  std::vector<std::size_t> lines;
  for (int i = 0; i < 40; ++i) lines.push_back(memory.pool.reserve_status_lines().value());
  std::vector<std::size_t> sorted = lines;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 1; i < sorted.size(); ++i) ASSERT_GE(sorted[i], sorted[i - 1] + sizeof(StatusLines));
  for (const std::size_t each : lines) memory.pool.give_back_status_lines(each);
  memory.pool.give_back_board(board, 10'000);
  const auto is_of_lines = [&](std::size_t begin, std::size_t size) {
    return std::any_of(lines.begin(), lines.end(), [&](std::size_t each) { return each < begin + size && begin < each + 64; });
  };
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(is_of_lines(memory.pool.lease(4096).value(), 4096));
    EXPECT_FALSE(is_of_lines(memory.pool.reserve(10'000).value(), 10'000));
  }
  const std::size_t used = memory.pool.used();
  for (int i = 0; i < 40; ++i) {
    const std::size_t again = memory.pool.reserve_status_lines().value();
    EXPECT_EQ(std::count(lines.begin(), lines.end(), again), 1) << "lines that were given back come first";
  }
  EXPECT_EQ(memory.pool.used(), used);
}

TEST(Pool, ABoardThatCannotBeClearedIsNotReused) {
  Memory memory(1 << 20);
  const std::size_t first = memory.pool.reserve(10'000).value();
  memory.refuses = true;
  memory.pool.give_back_board(first, 10'000);
  EXPECT_EQ(memory.releases, 1);
  EXPECT_NE(memory.pool.reserve(10'000).value(), first);
}

TEST(Pool, ALimitTooSmallForABoardNamesItsVariable) {
  Memory memory(1 << 20, 64 << 10);
  const Result<std::size_t> board = memory.pool.reserve(100'000);
  ASSERT_FALSE(board.ok());
  EXPECT_EQ(board.status().code(), Code::unavailable);
  EXPECT_THAT(std::string(board.status().text()), HasSubstr("SETO_SHARED_MEMORY_LIMIT"));
  EXPECT_EQ(memory.pool.used(), kHead) << "a rejected request does not count";
}

TEST(Pool, BoardsAndSlotsCountUnderOneLimit) {
  Memory memory(1 << 20, kHead + 64 * 1024);
  const std::size_t board = memory.pool.reserve(32 * 1024).value();
  const std::size_t slots = memory.pool.lease(32 * 1024).value();
  EXPECT_THAT(std::string(memory.pool.lease(4096).status().text()), HasSubstr("SETO_SHARED_MEMORY_LIMIT"));
  EXPECT_THAT(std::string(memory.pool.reserve(4096).status().text()), HasSubstr("SETO_SHARED_MEMORY_LIMIT"));
  memory.pool.give_back(slots, 32 * 1024);
  EXPECT_EQ(memory.pool.lease(32 * 1024).value(), slots) << "a lease of existing slots needs no room";
  memory.pool.give_back_board(board, 32 * 1024);
  EXPECT_TRUE(memory.pool.lease(4096).ok());
  EXPECT_EQ(memory.pool.used(), kHead + 32 * 1024 + 4096);
}

// A board that is reserved for too many ranks and returned leaves its addresses to boards of other sizes.
TEST(Pool, TheLastBoardReturnsItsAddresses) {
  Memory memory(1 << 20);
  const std::size_t first = memory.pool.reserve(600 << 10).value();
  memory.pool.give_back_board(first, 600 << 10);
  EXPECT_EQ(memory.pool.reserve(100 << 10).value(), first);
  EXPECT_TRUE(memory.pool.reserve(600 << 10).ok());
}

TEST(Pool, ASegmentThatIsFullAdvisesNoHigherLimit) {
  Memory memory(1 << 20, 1 << 20);
  const Result<std::size_t> board = memory.pool.reserve(2 << 20);
  ASSERT_FALSE(board.ok());
  EXPECT_EQ(std::string(board.status().text()).find("SETO_SHARED_MEMORY_LIMIT"), std::string::npos) << board.status().text();
  EXPECT_THAT(std::string(board.status().text()), HasSubstr("fewer"));
  EXPECT_FALSE(memory.pool.lease(2 << 20).ok());
}

TEST(Pool, SpareSlotsAreAnEighthOfTheMemoryAtMost) {
  Memory memory(1 << 20, 1 << 18);
  ASSERT_TRUE(memory.pool.lease_spare(16'384, kAnyNode));
  const std::optional<std::size_t> second = memory.pool.lease_spare(16'000, kAnyNode);
  ASSERT_TRUE(second);
  EXPECT_FALSE(memory.pool.lease_spare(4096, kAnyNode));
  memory.pool.give_back(*second, 16'000);
  EXPECT_EQ(memory.pool.lease_spare(10'000, kAnyNode), second) << "a free range needs no new memory";
  EXPECT_TRUE(memory.pool.lease(4096).ok());
}

// A pool whose memory went into long slots, which are free, has room for short ones.
TEST(Pool, LongFreeSlotsServeShortStreamsWhenNothingElseIsLeft) {
  Memory memory(1 << 16);
  const std::size_t whole = memory.pool.lease(1 << 15).value();
  while (memory.pool.lease(4096).ok()) {
  }
  memory.pool.give_back(whole, 1 << 15);
  std::set<std::size_t> parts;
  for (int i = 0; i < 8; ++i) parts.insert(memory.pool.lease(4096).value());
  EXPECT_EQ(parts.size(), 8U);
  EXPECT_EQ(*parts.begin(), whole);
  EXPECT_EQ(*parts.rbegin(), whole + 7 * 4096);
  EXPECT_FALSE(memory.pool.lease(4096).ok());
}

}  // namespace
}  // namespace seto::slots
