// The numbers that have arrived, compared with a set.

#include "transports/resume/received_frames.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>

#include "tests/support/seed.h"

namespace seto::resume {
namespace {

constexpr std::size_t kBeyond = 256;

void expect_same(const ReceivedFrames& frames, const std::set<std::uint64_t>& all) {
  std::uint64_t up_to = 0;
  while (all.count(up_to + 1) > 0) ++up_to;
  ASSERT_EQ(frames.all_up_to(), up_to);
  for (std::uint64_t number = up_to > 300 ? up_to - 300 : 1; number <= up_to + kBeyond + 70; ++number) {
    ASSERT_EQ(frames.has(number), all.count(number) > 0) << number << " after " << up_to;
    ASSERT_EQ(frames.within(number), number > up_to && number <= up_to + kBeyond) << number << " after " << up_to;
  }
  const Heard heard = frames.heard();
  ASSERT_EQ(heard.all_up_to, up_to);
  std::uint64_t at = up_to + 1;
  for (const NumberRange& range : heard.beyond()) {
    for (; at < range.first; ++at) ASSERT_EQ(all.count(at), 0U) << at;
    for (; at <= range.last; ++at) ASSERT_EQ(all.count(at), 1U) << at;
    ASSERT_EQ(all.count(at), 0U) << "two ranges touch at " << at;
  }
  if (heard.count < Heard::kMostRanges) {
    ASSERT_EQ(all.upper_bound(at), all.end()) << "a range is missing";
  }
}

TEST(ReceivedFrames, AreThoseOfASet) {
  std::mt19937_64 random(testing::chosen_seed());
  for (int round = 0; round < 20; ++round) {
    ReceivedFrames frames(kBeyond);
    std::set<std::uint64_t> all;
    const std::uint64_t spread = std::uint64_t{1} << (random() % 9);
    for (int i = 0; i < 400; ++i) {
      const std::uint64_t number = frames.all_up_to() + 1 + random() % spread;
      if (!frames.within(number) || frames.has(number)) continue;
      frames.add(number);
      all.insert(number);
      if (i % 16 == 0) {
        ASSERT_NO_FATAL_FAILURE(expect_same(frames, all));
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_same(frames, all));
  }
}

TEST(ReceivedFrames, TheLastGapThatClosesCountsAllBehindIt) {
  ReceivedFrames frames(kBeyond);
  for (std::uint64_t number = kBeyond; number > 1; --number) frames.add(number);
  EXPECT_EQ(frames.all_up_to(), 0U);
  EXPECT_EQ(frames.heard().count, 1U);
  frames.add(1);
  EXPECT_EQ(frames.all_up_to(), kBeyond);
  EXPECT_EQ(frames.heard().count, 0U);
  for (std::uint64_t number = kBeyond + 1; number <= 2 * kBeyond; ++number) EXPECT_FALSE(frames.has(number)) << number;
}

TEST(ReceivedFrames, OfMoreRangesThanFitTheLowestAreTold) {
  ReceivedFrames frames(kBeyond);
  for (std::uint64_t number = 2; number <= kBeyond; number += 2) frames.add(number);
  const Heard heard = frames.heard();
  EXPECT_EQ(heard.count, Heard::kMostRanges);
  EXPECT_EQ(heard.ranges[0].first, 2U);
  EXPECT_EQ(heard.last(), 2 * Heard::kMostRanges);
}

}  // namespace
}  // namespace seto::resume
