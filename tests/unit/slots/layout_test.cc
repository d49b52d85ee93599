// The layout of boards of few and of many ranks: parts that do not overlap, and boards that fit a segment.

#include "transports/slots/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "transports/slots/pool.h"

namespace seto::slots {
namespace {

constexpr std::size_t kSegment = std::size_t{4} << 30;  // Segment::Options

struct Part {
  std::size_t begin;
  std::size_t size;
};

std::vector<Part> parts_of(const BoardLayout& layout) {
  std::vector<Part> parts;
  for (std::uint64_t operation = 0; operation < kNotes; ++operation) parts.push_back({layout.note(operation), sizeof(NoteLine)});
  parts.push_back({layout.words(), sizeof(WordLines)});
  for (std::uint64_t window = 0; window < kWindow; ++window)
    for (std::uint32_t port = 0; port < layout.ports(); ++port) {
      const bool lines = BoardLayout::has_inline_lines(port);
      for (std::uint32_t target = 0; target < layout.members() + kMostGroups; ++target)
        parts.push_back({layout.outgoing(window, port, target), lines ? sizeof(StreamLines) : sizeof(StreamLine)});
      for (std::uint32_t sender = 0; sender < layout.members(); ++sender)
        for (std::uint32_t source = 0; source <= kMostGroups; ++source)
          parts.push_back({layout.taken(window, port, sender, source), lines ? kLineSize : sizeof(Counter)});
    }
  for (std::uint32_t member = 0; member < layout.members(); ++member) {
    parts.push_back({layout.messages(member), kPairLines * sizeof(PairLine)});
    parts.push_back({layout.received(member), sizeof(PairTakenLine)});
  }
  return parts;
}

TEST(BoardLayout, GivesEachPartItsOwnPlace) {
  for (const auto& [members, ports] : {std::pair{1U, 16U}, {2U, 16U}, {3U, 64U}, {5U, 65U}, {7U, 67U}, {9U, 200U}}) {
    const BoardLayout layout(members, ports);
    std::vector<Part> parts = parts_of(layout);
    std::sort(parts.begin(), parts.end(), [](const Part& left, const Part& right) { return left.begin < right.begin; });
    for (std::size_t i = 1; i < parts.size(); ++i)
      ASSERT_LE(parts[i - 1].begin + parts[i - 1].size, parts[i].begin) << members << " members, " << ports << " ports";
    EXPECT_LE(parts.back().begin + parts.back().size, layout.size());
    for (const Part& part : parts)
      ASSERT_EQ(part.begin % std::min(part.size, kLineSize), 0U) << "a part of " << part.size << " bytes at " << part.begin;
  }
}

TEST(BoardLayout, OfThousandsOfRanksFitsASegment) {
  EXPECT_LT(BoardLayout(1'025, 2 * 1'025).size(), kSegment / 5) << "several communicators of one context";
  EXPECT_LT(BoardLayout(2'500, 2 * 2'500).size(), kSegment);
}

// Ports from kInlinePorts on lead to few ranks: a ring of many ranks touches few pages.
TEST(BoardLayout, OfARingLiesOnFewPages) {
  constexpr std::uint32_t kRanks = 1'025, kNext = 400;
  constexpr std::size_t kPage = 4'096;
  const BoardLayout layout(kRanks, 2 * kRanks);
  std::set<std::size_t> pages;
  for (std::uint64_t window = 0; window < kWindow; ++window)
    for (std::uint32_t port = 0; port < layout.ports(); ++port) {
      pages.insert(layout.outgoing(window, port, kNext) / kPage);
      pages.insert(layout.taken(window, port, kNext, 0) / kPage);
    }
  EXPECT_LT(pages.size(), 400U);
}

// The pool hands out addresses, and the memory of a board is touched where it is used.
TEST(BoardLayout, OfManyRanksIsReservedSeveralTimes) {
  std::size_t populated = 0;
  Pool pool(kLineSize * 64, kSegment, [&](std::size_t, std::size_t size) {
    populated += size;
    return Status();
  });
  const std::size_t size = BoardLayout(1'025, 2 * 1'025).size();
  for (int communicator = 0; communicator < 5; ++communicator) {
    const Result<std::size_t> board = pool.reserve(size);
    ASSERT_TRUE(board.ok()) << communicator << ": " << board.status().text();
  }
  EXPECT_EQ(populated, 0U);
  const Result<std::size_t> too_large = pool.reserve(BoardLayout(4'000, 8'000).size());
  EXPECT_THAT(std::string(too_large.status().text()), ::testing::HasSubstr("fewer ranks on this node"));
}

}  // namespace
}  // namespace seto::slots
