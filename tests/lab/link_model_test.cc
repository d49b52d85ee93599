#include "tests/lab/link_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/seed.h"

namespace seto::lab {
namespace {

constexpr Nanoseconds kMs = 1'000'000;

Segments one(std::uint32_t size) { return {.count = 1, .size = size, .last_size = size}; }

std::vector<Piece> offered(LinkModel& link, Nanoseconds now, const Segments& packet) {
  std::vector<Piece> pieces;
  link.offer(now, packet, pieces);
  return pieces;
}

TEST(LinkModel, AnUnlimitedLinkOnlyDelays) {
  LinkModel link({.delay = 5 * kMs}, 1);
  for (const Nanoseconds now : {Nanoseconds{0}, 3 * kMs, 3 * kMs}) {
    const auto pieces = offered(link, now, {.count = 44, .size = 1500, .last_size = 600});
    ASSERT_EQ(pieces.size(), 1U);
    EXPECT_EQ(pieces[0].first, 0U);
    EXPECT_EQ(pieces[0].count, 44U);
    EXPECT_EQ(pieces[0].due, now + 5 * kMs);
  }
}

TEST(LinkModel, PacketsFollowEachOtherAtTheRate) {
  LinkModel link({.rate = 12e6, .delay = kMs}, 1);  // 1500 bytes take 1 ms
  EXPECT_EQ(offered(link, 0, one(1500))[0].due, 2 * kMs);
  EXPECT_EQ(offered(link, 0, one(1500))[0].due, 3 * kMs);
  EXPECT_EQ(offered(link, 10 * kMs, one(1500))[0].due, 12 * kMs);
}

TEST(LinkModel, SegmentsThatAreTooLargeAreSwallowed) {
  LinkModel link({.rate = 12e6, .largest = 1400}, 1);
  EXPECT_EQ(offered(link, 0, one(1400)).size(), 1U);
  EXPECT_EQ(offered(link, 0, one(1401)).size(), 0U);
  const auto last = offered(link, 0, {.count = 3, .size = 1500, .last_size = 60});
  ASSERT_EQ(last.size(), 1U) << "each segment of a packet counts for itself";
  EXPECT_EQ(last[0].first, 2U);
  EXPECT_EQ(link.counters().swallowed, 3U);
  link.change(0, {.rate = 12e6});
  EXPECT_EQ(offered(link, 0, one(1500)).size(), 1U);
}

TEST(LinkModel, TheLineReportsHowLongItIsBusy) {
  LinkModel link({.rate = 12e6, .delay = kMs}, 1);
  static_cast<void>(offered(link, 0, one(1500)));
  static_cast<void>(offered(link, 0, one(1500)));
  EXPECT_EQ(link.busy_until(), 2 * kMs) << "the delay does not occupy the line";
}

TEST(LinkModel, FramingCostsTime) {
  LinkModel link({.rate = 12e6, .overhead = 1500}, 1);
  EXPECT_EQ(offered(link, 0, one(1500))[0].due, 2 * kMs);
}

TEST(LinkModel, ABucketAccumulatesNoMoreThanItsSize) {
  LinkModel link({.rate = 12e6, .bucket_bytes = 3000}, 1);
  const Nanoseconds start = 1000 * kMs;
  EXPECT_EQ(offered(link, start, one(1500))[0].due, start);
  EXPECT_EQ(offered(link, start, one(1500))[0].due, start);
  EXPECT_EQ(offered(link, start, one(1500))[0].due, start + kMs);
  // 5 ms later 7500 bytes less the 1500 owed would have accumulated, but the bucket holds 3000.
  EXPECT_EQ(offered(link, start + 6 * kMs, one(3000))[0].due, start + 6 * kMs);
  EXPECT_EQ(offered(link, start + 6 * kMs, one(1500))[0].due, start + 7 * kMs);
}

// Over a long time the rate holds with any bucket: at most 64 KiB more are sent.
TEST(LinkModel, TheRateHoldsOverTime) {
  for (const double rate : {25e6, 200e6, 1e9}) {
    LinkModel link({.rate = rate, .bucket_bytes = 64 << 10}, 1);
    Nanoseconds now = 1000 * kMs, last = 0;
    const Nanoseconds start = now;
    double bytes = 0;
    while (now < start + 1000 * kMs) {
      for (const Piece& piece : offered(link, now, {.count = 44, .size = 1500, .last_size = 1500})) {
        bytes += piece.count * 1500.0;
        last = piece.due;
      }
      now += kMs / 10;
    }
    const double seconds = static_cast<double>(last - start) / 1e9;
    EXPECT_LE(bytes * 8, rate * seconds + (64 << 10) * 8 + 1500 * 8) << rate;
    EXPECT_GE(bytes * 8, rate * seconds * 0.999) << rate;
  }
}

TEST(LinkModel, TheQueueDropsAtItsTail) {
  LinkModel link({.rate = 12e6, .queue_bytes = 6000}, 1);
  const auto pieces = offered(link, 0, {.count = 10, .size = 1500, .last_size = 1500});
  std::uint32_t passed = 0;
  for (const Piece& piece : pieces) passed += piece.count;
  EXPECT_EQ(passed, 4U);
  EXPECT_EQ(link.counters().overflow, 6U);
  EXPECT_EQ(pieces.back().due, 4 * kMs);
  EXPECT_EQ(offered(link, kMs, one(1500)).size(), 1U) << "the queue has room again after a millisecond";
  EXPECT_EQ(offered(link, kMs, one(1500)).size(), 0U);
}

TEST(LinkModel, APacketLargerThanTheQueuePassesWhenTheLineIsFree) {
  LinkModel link({.rate = 12e6, .queue_bytes = 100}, 1);
  EXPECT_EQ(offered(link, 0, one(1500)).size(), 1U);
  EXPECT_EQ(offered(link, 0, one(1500)).size(), 0U);
}

TEST(LinkModel, AnUnsetQueueHoldsARoundTrip) {
  EXPECT_EQ(queue_limit({.rate = 1e9, .delay = 30 * kMs}), 7'500'000U);
  EXPECT_EQ(queue_limit({.rate = 1e6, .delay = kMs}), 256U << 10);
  EXPECT_EQ(queue_limit({.rate = 1e9, .delay = kMs, .queue_time = 60 * kMs}), 7'500'000U);
}

TEST(LinkModel, SlowLinesDeliverInPieces) {
  LinkModel link({.rate = 24e6}, 1);  // 1500 bytes take half a millisecond
  const auto pieces = offered(link, 0, {.count = 40, .size = 1500, .last_size = 1500});
  ASSERT_EQ(pieces.size(), 20U);
  for (std::size_t index = 0; index < pieces.size(); ++index) {
    EXPECT_EQ(pieces[index].first, index * 2);
    EXPECT_EQ(pieces[index].count, 2U);
    EXPECT_EQ(pieces[index].due, static_cast<Nanoseconds>(index + 1) * kMs);
  }
}

TEST(LinkModel, LossIsDecidedForEachSegment) {
  const std::uint64_t seed = seto::testing::chosen_seed();
  LinkModel link({.loss = 0.01}, seed);
  std::uint32_t survived = 0;
  for (int packet = 0; packet < 5000; ++packet) {
    std::uint32_t next = 0;
    for (const Piece& piece : offered(link, packet, {.count = 40, .size = 1500, .last_size = 1500})) {
      EXPECT_TRUE(piece.first > next || next == 0) << "a loss is between two pieces";
      EXPECT_GT(piece.count, 0U);
      next = piece.first + piece.count;
      survived += piece.count;
    }
    EXPECT_LE(next, 40U);
  }
  const double lost = 200'000.0 - survived;
  EXPECT_EQ(link.counters().lost, static_cast<std::uint64_t>(lost));
  EXPECT_NEAR(lost, 2000, 6 * std::sqrt(2000)) << "six standard deviations";
}

TEST(LinkModel, LostSegmentsUseTheLine) {
  LinkModel link({.rate = 12e6, .loss = 1}, 1);
  EXPECT_TRUE(offered(link, 0, one(1500)).empty());
  LinkSettings sound = link.settings();
  sound.loss = 0;
  link.change(0, sound);
  EXPECT_EQ(offered(link, 0, one(1500))[0].due, 2 * kMs);
}

// A bad state with probability 1/10 to leave lasts ten segments on average. With probability 1/100 to enter, 1 of 11 segments is
// in it.
TEST(LinkModel, BurstsHaveTheSetLengthAndFrequency) {
  const std::uint64_t seed = seto::testing::chosen_seed();
  LinkModel link({.burst_loss = {.enter = 0.01, .leave = 0.1, .loss = 1}}, seed);
  int lost = 0, bursts = 0;
  bool before = false;
  constexpr int kOffered = 400'000;
  for (int packet = 0; packet < kOffered; ++packet) {
    const bool now = offered(link, packet, one(1500)).empty();
    lost += now;
    bursts += now && !before;
    before = now;
  }
  EXPECT_NEAR(lost / static_cast<double>(kOffered), 1.0 / 11, 0.01);
  EXPECT_NEAR(lost / static_cast<double>(bursts), 10, 1);
}

TEST(LinkModel, JitterKeepsTheOrderOfPackets) {
  LinkModel link({.delay = 5 * kMs, .jitter = 2 * kMs}, seto::testing::chosen_seed());
  Nanoseconds last = 0, least = kMs * 100, most = 0;
  for (int packet = 0; packet < 1000; ++packet) {
    const Nanoseconds now = packet * 10 * kMs;
    const Nanoseconds due = offered(link, now, one(100))[0].due;
    EXPECT_GE(due, last);
    last = due;
    least = std::min(least, due - now);
    most = std::max(most, due - now);
  }
  EXPECT_GE(least, 5 * kMs);
  EXPECT_LT(least, 5 * kMs + kMs / 5);
  EXPECT_LE(most, 7 * kMs);
  EXPECT_GT(most, 7 * kMs - kMs / 5);
}

TEST(LinkModel, ACutAndAHoleLoseEverything) {
  for (const bool cut : {true, false}) {
    LinkModel link({}, 1);
    EXPECT_EQ(offered(link, 0, one(100)).size(), 1U);
    LinkSettings settings;
    (cut ? settings.cut : settings.hole) = true;
    link.change(0, settings);
    EXPECT_TRUE(offered(link, 0, one(100)).empty());
    link.change(0, {});
    EXPECT_EQ(offered(link, 0, one(100)).size(), 1U);
    EXPECT_EQ(link.counters().swallowed, 1U);
  }
}

TEST(LinkModel, WaitingPacketsLeaveAtTheNewRate) {
  LinkModel link({.rate = 12e6}, 1);
  static_cast<void>(offered(link, 0, one(1500)));
  LinkSettings faster = link.settings();
  faster.rate = 24e6;
  link.change(0, faster);
  EXPECT_EQ(offered(link, 0, one(1500))[0].due, kMs);
}

}  // namespace
}  // namespace seto::lab
