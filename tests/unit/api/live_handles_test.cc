// The handles that are alive.

#include "src/api/support/live_handles.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace seto::api {
namespace {

// The objects are static, as those of the library are: their entries are never freed, and a sanitizer sees that they are in use.

TEST(LiveHandles, AreKnownFromAddToRemove) {
  static LiveHandles live;
  const int one = 0;
  EXPECT_FALSE(live.contains(&one));
  EXPECT_FALSE(live.contains(nullptr));
  live.add(&one);
  EXPECT_TRUE(live.contains(&one));
  EXPECT_FALSE(live.contains(nullptr)) << "although there are unused entries";
  live.remove(&one);
  live.remove(&one);
  EXPECT_FALSE(live.contains(&one));
  live.add(&one);
  EXPECT_TRUE(live.contains(&one)) << "the next handle may have the same address";
  live.remove(&one);
}

TEST(LiveHandles, ThereMayBeMoreOfThemThanBuckets) {
  static LiveHandles live;
  const std::vector<int> all(10'000);
  for (const int& each : all) live.add(&each);
  for (std::size_t i = 0; i < all.size(); i += 2) live.remove(&all[i]);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(live.contains(&all[i]), i % 2 == 1) << i;
  for (const int& each : all) live.remove(&each);
}

TEST(LiveHandles, AreFoundWhileOthersComeAndGo) {
  static LiveHandles live;
  const std::vector<int> others(2000);
  const int kept = 0;
  live.add(&kept);
  std::atomic<bool> done{false};
  std::thread changes([&] {
    for (int round = 0; round < 20; ++round) {
      for (const int& each : others) live.add(&each);
      for (const int& each : others) live.remove(&each);
    }
    done = true;
  });
  bool found = true;
  do found = found && live.contains(&kept);
  while (!done);
  changes.join();
  EXPECT_TRUE(found);
  live.remove(&kept);
}

}  // namespace
}  // namespace seto::api
