#include "transports/tcp/streams/message_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/support/seed.h"

namespace seto::tcp {
namespace {

constexpr std::size_t kMost = 256;

TEST(MessageTable, StaysSmallWhileSlicesFollowEachOther) {
  constexpr std::uint64_t kAhead = 10;
  MessageTable table(kMost);
  for (std::uint64_t slice = 0; slice < 10'000; ++slice) {
    StreamMessage* const added = table.add(slice);
    ASSERT_NE(added, nullptr);
    EXPECT_EQ(added->slice, slice);
    EXPECT_EQ(added->size, 0U) << "nothing is left of an earlier message";
    added->size = static_cast<std::uint32_t>(slice);
    if (slice < kAhead) continue;
    StreamMessage* const oldest = table.find(slice - kAhead);
    ASSERT_NE(oldest, nullptr) << slice;
    EXPECT_EQ(oldest->size, slice - kAhead);
    table.remove(*oldest);
    EXPECT_EQ(table.find(slice - kAhead), nullptr);
  }
  EXPECT_EQ(table.held(), kAhead);
  EXPECT_LE(table.capacity(), 32U);
}

// A peer chooses the numbers of slices: here they all belong into the same place.
TEST(MessageTable, GrowsWithTheNumberOfMessagesAndNotWithTheirSlices) {
  MessageTable table(kMost);
  for (std::uint64_t i = 0; i < kMost; ++i) {
    ASSERT_NE(table.add(i << 16), nullptr);
    EXPECT_LE(table.capacity(), std::max<std::size_t>(4, 4 * table.held()));
  }
  for (std::uint64_t i = 0; i < kMost; ++i) {
    ASSERT_NE(table.find(i << 16), nullptr) << i;
    EXPECT_EQ(table.find(i << 16)->slice, i << 16);
  }
  EXPECT_EQ(table.find(1), nullptr);
}

TEST(MessageTable, HoldsAsManyMessagesAsItMay) {
  MessageTable table(4);
  for (std::uint64_t slice = 0; slice < 4; ++slice) ASSERT_NE(table.add(slice), nullptr);
  EXPECT_EQ(table.add(4), nullptr);
  table.remove(*table.find(2));
  ASSERT_NE(table.add(4), nullptr);
  EXPECT_EQ(table.find(4)->slice, 4U);
  EXPECT_EQ(table.find(0)->slice, 0U) << "it is at home in the place that slice 4 would have";
  EXPECT_EQ(table.add(5), nullptr);
}

// Compared with a map, with slices near each other and far apart.
TEST(MessageTable, FindsWhatWasAddedAndNotRemoved) {
  std::mt19937_64 random(testing::chosen_seed());
  for (const std::uint64_t range : {std::uint64_t{8}, std::uint64_t{300}, std::uint64_t{1} << 24}) {
    MessageTable table(kMost);
    std::map<std::uint64_t, std::uint32_t> expected;  // content by slice
    for (std::uint32_t step = 0; step < 20'000; ++step) {
      const std::uint64_t slice = random() % range;
      StreamMessage* const found = table.find(slice);
      const auto known = expected.find(slice);
      ASSERT_EQ(found != nullptr, known != expected.end()) << "slice " << slice << " of " << range << ", step " << step;
      if (found != nullptr) {
        ASSERT_EQ(found->size, known->second);
        table.remove(*found);
        expected.erase(known);
      } else if (StreamMessage* const added = table.add(slice)) {
        added->size = expected[slice] = step;
      } else {
        ASSERT_EQ(expected.size(), kMost);
        table.remove(*table.find(expected.begin()->first));
        expected.erase(expected.begin());
      }
      ASSERT_EQ(table.held(), expected.size());
    }
    std::size_t visited = 0;
    table.for_each([&](StreamMessage& message) {
      EXPECT_EQ(expected.at(message.slice), message.size);
      table.remove(message);
      ++visited;
    });
    EXPECT_EQ(visited, expected.size());
    EXPECT_EQ(table.held(), 0U);
  }
}

}  // namespace
}  // namespace seto::tcp
