#include "src/base/clock.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace seto {
namespace {

void spin_ns(std::uint64_t duration) {
  const std::uint64_t start = monotonic_ns();
  while (monotonic_ns() - start < duration) {
  }
}

TEST(Clock, NeverRunsBackwards) {
  std::uint64_t last = monotonic_ns();
  for (int round = 0; round < 10000; ++round) {
    const std::uint64_t now = monotonic_ns();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(Ticks, RateIsMeasuredOnce) {
  const double first = ticks_per_second();
  EXPECT_GT(first, 1e6);
  EXPECT_EQ(first, ticks_per_second());
}

TEST(Ticks, AgreeWithTheClock) {
  // A thread may lose its core between two reads, but it can never gain time: one good round of many is enough.
  constexpr std::uint64_t kSpanNs = 2'000'000;
  constexpr double kTolerance = 0.01;
  double best = std::numeric_limits<double>::max();
  for (int round = 0; round < 50 && best > kTolerance; ++round) {
    const std::uint64_t start_ns = monotonic_ns();
    const std::uint64_t start = ticks();
    spin_ns(kSpanNs);
    const std::uint64_t elapsed = ticks_to_ns(ticks() - start);
    const double real = static_cast<double>(monotonic_ns() - start_ns);
    const double error = static_cast<double>(elapsed) / real - 1;
    best = std::min(best, error < 0 ? -error : error);
  }
  EXPECT_LT(best, kTolerance);
}

TEST(Deadline, ZeroHasPassedAtOnce) {
  const Deadline deadline = Deadline::after_ms(0);
  EXPECT_TRUE(deadline.passed());
  EXPECT_EQ(deadline.remaining_ms(), 0);
}

TEST(Deadline, PassesAfterItsTimeAndNotBefore) {
  const std::uint64_t start = monotonic_ns();
  const Deadline deadline = Deadline::after_ms(3);
  while (!deadline.passed()) EXPECT_LE(deadline.remaining_ms(), 4);
  EXPECT_GE(monotonic_ns() - start, 3'000'000U);
  EXPECT_EQ(deadline.remaining_ms(), 0);
}

TEST(Deadline, RemainingIsRoundedUpSoThatAWaitReachesIt) {
  const Deadline deadline = Deadline::after_ms(60'000);
  EXPECT_FALSE(deadline.passed());
  EXPECT_GT(deadline.remaining_ms(), 0);
  EXPECT_LE(deadline.remaining_ms(), 60'001);
}

TEST(Deadline, EitherOfTwoFlagsEndsIt) {
  std::atomic<bool> first = false;
  std::atomic<bool> second = false;
  const Deadline one = Deadline::never().unless(nullptr).unless(&first);
  const Deadline both = one.unless(&second).sooner_ms(1'000'000);
  EXPECT_FALSE(both.passed());
  second = true;
  EXPECT_TRUE(both.stopped() && both.passed());
  EXPECT_EQ(both.remaining_ms(), 0);
  EXPECT_FALSE(one.passed());
  second = false;
  first = true;
  EXPECT_TRUE(one.passed() && both.later_ms(1000).passed());
  EXPECT_FALSE(both.unless(nullptr).stopped());
  EXPECT_GT(both.unless(nullptr).remaining_ms(), 0);
}

TEST(Deadline, HugeTimeoutDoesNotOverflow) {
  const Deadline deadline = Deadline::after_ms(std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(deadline.passed());
  EXPECT_EQ(deadline.remaining_ms(), std::numeric_limits<int>::max());
}

}  // namespace
}  // namespace seto
