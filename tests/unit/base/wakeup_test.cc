#include "src/base/wakeup.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <thread>

namespace seto {
namespace {

bool readable(const Wakeup& wakeup) {
  pollfd entry{wakeup.descriptor(), POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

TEST(Wakeup, IsReadableFromTheFirstRingUntilItIsDrained) {
  const auto wakeup = Wakeup::create().value();
  EXPECT_FALSE(readable(*wakeup));
  wakeup->ring();
  wakeup->ring();
  EXPECT_TRUE(readable(*wakeup));
  EXPECT_TRUE(readable(*wakeup)) << "a look takes nothing";
  wakeup->drain();
  EXPECT_FALSE(readable(*wakeup)) << "one drain takes all rings";
}

TEST(Wakeup, IsDrainedWithoutWaitingWhenNobodyRang) {
  const auto wakeup = Wakeup::create().value();
  wakeup->drain();
  wakeup->ring();
  EXPECT_TRUE(readable(*wakeup));
}

// A peer that never drains must not block the one that rings: eventfd counts to 2^64 - 2.
TEST(Wakeup, RingsWithoutWaitingWhenTheCountIsFull) {
  const auto wakeup = Wakeup::create().value();
  const std::uint64_t most = ~std::uint64_t{0} - 1;
  ASSERT_EQ(write(wakeup->descriptor(), &most, sizeof most), static_cast<ssize_t>(sizeof most));
  wakeup->ring();
  EXPECT_TRUE(readable(*wakeup));
  wakeup->drain();
  EXPECT_FALSE(readable(*wakeup));
}

TEST(Wakeup, OfAnotherProcessWakesTheSameContext) {
  const auto own = Wakeup::create().value();
  const Wakeup received(Fd(dup(own->descriptor())));
  received.ring();
  EXPECT_TRUE(readable(*own));
  own->drain();
  EXPECT_FALSE(readable(received));
}

TEST(Wakeup, EndsASleepInAnotherThread) {
  const auto wakeup = Wakeup::create().value();
  std::thread ringer([&] { wakeup->ring(); });
  pollfd entry{wakeup->descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&entry, 1, 20'000), 1);
  ringer.join();
}

TEST(Wakeup, NamesTheLimitOfDescriptorsWhenThereIsNone) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto wakeup = Wakeup::create();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(wakeup.status().code(), Code::unavailable);
  EXPECT_EQ(wakeup.status().text(), "no descriptor for the wakeup of a context (ulimit -n): Too many open files");
}

}  // namespace
}  // namespace seto
