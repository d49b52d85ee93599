#include "src/core/launch/store_tuner.h"

#include <gtest/gtest.h>

namespace seto {
namespace {

bool same(StoreChoice::Way a, StoreChoice::Way b) { return a.slots == b.slots && a.results == b.results; }

// Calls the choice `calls` times on a machine where one way takes `best` ticks and every other twice that; how often that one
// ran.
int times_chosen(StoreChoice& choice, StoreChoice::Way good, int calls) {
  int chosen = 0;
  for (int i = 0; i < calls; ++i) {
    const StoreChoice::Way way = choice.next();
    choice.took(way, same(way, good) ? 1000 : 2000);
    if (same(way, good)) ++chosen;
  }
  return chosen;
}

constexpr StoreChoice::Way kGood{Store::past_cache, Store::past_cache, 0};
constexpr StoreChoice::Way kOther{Store::cached, Store::cached, 0};

TEST(StoreChoice, FindsTheFastestAndLooksAroundNowAndThen) {
  StoreChoice choice(4 << 20);
  EXPECT_EQ(times_chosen(choice, kGood, 8), 2) << "four ways, two tries each";
  const int chosen = times_chosen(choice, kGood, 960);
  EXPECT_GE(chosen, 920);
  EXPECT_LT(chosen, 960);
}

TEST(StoreChoice, FollowsAMachineThatChanges) {
  StoreChoice choice(4 << 20);
  (void)times_chosen(choice, kGood, 500);
  (void)times_chosen(choice, kOther, 500);
  EXPECT_GE(times_chosen(choice, kOther, 96), 90);
}

TEST(StoreChoice, ResultsThatStayInTheCacheAreNotStreamed) {
  StoreChoice choice(256 << 10);
  for (int i = 0; i < 200; ++i) {
    const StoreChoice::Way way = choice.next();
    EXPECT_EQ(way.results, Store::cached);
    choice.took(way, 1000);
  }
}

TEST(StoreChoice, SlotsCanBeSettled) {
  for (const SlotStore slots : {SlotStore::cached, SlotStore::streamed}) {
    StoreChoice choice(4 << 20, slots);
    bool streamed_results = false;
    for (int i = 0; i < 100; ++i) {
      const StoreChoice::Way way = choice.next();
      EXPECT_EQ(way.slots == Store::cached, slots == SlotStore::cached);
      streamed_results = streamed_results || way.results == Store::past_cache;
      choice.took(way, 1000);
    }
    EXPECT_TRUE(streamed_results);
  }
}

TEST(StoreChoice, BeyondEveryCacheBeginsWithWhatHalfTheSizeFound) {
  StoreChoice half(16 << 20);
  StoreChoice whole(32 << 20, SlotStore::automatic, &half);  // asks only when it is used
  (void)times_chosen(half, kGood, 20);
  EXPECT_EQ(times_chosen(whole, kGood, 3), 3);
  StoreChoice small(8 << 20, SlotStore::automatic, &half);
  EXPECT_EQ(times_chosen(small, kGood, 8), 2) << "another size is another matter there";
  const StoreChoice fresh(16 << 20);
  StoreChoice other(32 << 20, SlotStore::automatic, &fresh);  // knows nothing yet
  EXPECT_EQ(times_chosen(other, kGood, 8), 2);
}

}  // namespace
}  // namespace seto
