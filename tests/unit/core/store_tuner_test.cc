#include "src/core/launch/store_tuner.h"

#include <gtest/gtest.h>

namespace seto {
namespace {

bool same(StoreTuner::Way a, StoreTuner::Way b) { return a.slots == b.slots && a.results == b.results; }

// Makes `calls` calls on a machine where the way `good` takes `best` ticks and every other way twice that. Returns how often
// `good` was chosen.
int times_chosen(StoreTuner& choice, StoreTuner::Way good, int calls) {
  int chosen = 0;
  for (int i = 0; i < calls; ++i) {
    const StoreTuner::Way way = choice.next();
    choice.took(way, same(way, good) ? 1000 : 2000);
    if (same(way, good)) ++chosen;
  }
  return chosen;
}

constexpr StoreTuner::Way kGood{Store::past_cache, Store::past_cache, 0};
constexpr StoreTuner::Way kOther{Store::cached, Store::cached, 0};

TEST(StoreTuner, FindsTheFastestAndTriesOthersNowAndThen) {
  StoreTuner choice(4 << 20);
  EXPECT_EQ(times_chosen(choice, kGood, 8), 2) << "four ways, two tries each";
  const int chosen = times_chosen(choice, kGood, 960);
  EXPECT_GE(chosen, 920);
  EXPECT_LT(chosen, 960);
}

TEST(StoreTuner, FollowsAMachineThatChanges) {
  StoreTuner choice(4 << 20);
  (void)times_chosen(choice, kGood, 500);
  (void)times_chosen(choice, kOther, 500);
  EXPECT_GE(times_chosen(choice, kOther, 96), 90);
}

// A scheduler that stops a rank for milliseconds makes one call a thousand times as long.
TEST(StoreTuner, ACallThatWasDisturbedDoesNotHideTheFastestWay) {
  for (const int disturbed : {1, 2, 3, 40, 48}) {
    StoreTuner choice(64 << 10);
    int chosen = 0;
    for (int i = 0; i < 200; ++i) {
      const StoreTuner::Way way = choice.next();
      const bool is_good = same(way, kOther);
      choice.took(way, (is_good ? 1000U : 2000U) * (i == disturbed ? 1000U : 1U));
      if (i >= 100 && is_good) ++chosen;
    }
    EXPECT_GE(chosen, 95) << "call " << disturbed;
  }
}

TEST(StoreTuner, ResultsThatStayInTheCacheAreNotStreamed) {
  StoreTuner choice(256 << 10);
  for (int i = 0; i < 200; ++i) {
    const StoreTuner::Way way = choice.next();
    EXPECT_EQ(way.results, Store::cached);
    choice.took(way, 1000);
  }
}

TEST(StoreTuner, TheCachesOfTheMachineDecideWhatIsTried) {
  const auto streams = [](std::uint64_t bytes, const StoreSizes& sizes) {
    StoreTuner choice(bytes, SlotStore::automatic, nullptr, sizes);
    bool found = false;
    for (int call = 0; call < 8; ++call) {
      const StoreTuner::Way way = choice.next();
      found |= way.results == Store::past_cache;
      choice.took(way, 100);
    }
    return found;
  };
  EXPECT_FALSE(streams(512 << 10, {}));
  EXPECT_TRUE(streams(512 << 10, {512 << 10, 16 << 20}));
  EXPECT_TRUE(streams(1 << 20, {}));
  EXPECT_FALSE(streams(1 << 20, {2 << 20, 16 << 20}));
}

TEST(StoreTuner, SlotsCanBeSettled) {
  for (const SlotStore slots : {SlotStore::cached, SlotStore::streamed}) {
    StoreTuner choice(4 << 20, slots);
    bool streamed_results = false;
    for (int i = 0; i < 100; ++i) {
      const StoreTuner::Way way = choice.next();
      EXPECT_EQ(way.slots == Store::cached, slots == SlotStore::cached);
      streamed_results = streamed_results || way.results == Store::past_cache;
      choice.took(way, 1000);
    }
    EXPECT_TRUE(streamed_results);
  }
}

TEST(StoreTuner, BeyondEveryCacheStartsWithTheResultOfHalfTheSize) {
  StoreTuner half(16 << 20);
  StoreTuner whole(32 << 20, SlotStore::automatic, &half);  // reads `half` only when it is used
  (void)times_chosen(half, kGood, 20);
  EXPECT_EQ(times_chosen(whole, kGood, 3), 3);
  StoreTuner small(8 << 20, SlotStore::automatic, &half);
  EXPECT_EQ(times_chosen(small, kGood, 8), 2) << "another size is measured separately there";
  const StoreTuner fresh(16 << 20);
  StoreTuner other(32 << 20, SlotStore::automatic, &fresh);  // has no measurements yet
  EXPECT_EQ(times_chosen(other, kGood, 8), 2);
  StoreTuner in_a_large_cache(32 << 20, SlotStore::automatic, &half, {1 << 20, 64 << 20});
  EXPECT_EQ(times_chosen(in_a_large_cache, kGood, 8), 2);
}

}  // namespace
}  // namespace seto
