// How often the set-up of a rail is tried again.

#include "transports/tcp/connect/set_up_pause.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace seto::tcp {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

// Each set-up that may begin fails at once. Returns how many there are within that time, looked for every 0.1 s.
int failures(SetUpPause& pause, std::uint64_t from_ns, std::uint64_t time_ns) {
  int count = 0;
  for (std::uint64_t now = from_ns; now < from_ns + time_ns; now += kSecond / 10) {
    if (!pause.over(now)) continue;
    pause.failed(now);
    ++count;
  }
  return count;
}

TEST(SetUpPause, SetUpsThatFailBecomeRare) {
  SetUpPause pause;
  // At 0, 0.1, 0.3, 0.7, 1.5, 3.1, 6.3, 12.7, 25.5 and 51.1 s.
  EXPECT_EQ(failures(pause, kSecond, 60 * kSecond), 10);
  // Pauses of 51.2, 102.4, 204.8, 409.6 s and then of 600 s.
  EXPECT_EQ(failures(pause, 61 * kSecond, 3'600 * kSecond), 4 + 4);
}

// After a time without a rail, the next try comes within about as long again.
TEST(SetUpPause, IsNoLongerThanWhatHasPassed) {
  SetUpPause pause;
  for (std::uint64_t now = kSecond, last = now; now < 1'000 * kSecond; now += kSecond / 10) {
    if (!pause.over(now)) continue;
    ASSERT_LE(now - last, last - kSecond + kSecond / 5) << now;
    last = now;
    pause.failed(now);
  }
}

TEST(SetUpPause, AnEventOfAPortBeginsAnew) {
  SetUpPause pause;
  (void)failures(pause, kSecond, 3'600 * kSecond);
  const std::uint64_t now = 3'601 * kSecond;
  ASSERT_FALSE(pause.over(now));
  pause.something_changed(now);
  EXPECT_FALSE(pause.over(now)) << "an address may follow the port";
  EXPECT_TRUE(pause.over(now + SetUpPause::kFirstNs));
  EXPECT_EQ(failures(pause, now, 10 * kSecond), 6) << "at 0.1, 0.3, 0.7, 1.5, 3.1 and 6.3 s";
}

TEST(SetUpPause, AnEventDelaysNothing) {
  SetUpPause pause;
  pause.something_changed(kSecond);
  EXPECT_TRUE(pause.over(kSecond));
}

// A rail that works again at last, and breaks soon after, is not given up for minutes.
TEST(SetUpPause, OneSuccessIsEnoughToTryAgainSoon) {
  SetUpPause pause;
  (void)failures(pause, kSecond, 3'600 * kSecond);
  const std::uint64_t now = 4'300 * kSecond;
  pause.succeeded(now);
  EXPECT_FALSE(pause.over(now));
  EXPECT_TRUE(pause.over(now + SetUpPause::kLongestOfWorkingNs));
  pause.succeeded(now);
  EXPECT_TRUE(pause.over(now + SetUpPause::kLongestOfWorkingNs / 2)) << "and sooner each time";
}

}  // namespace
}  // namespace seto::tcp
