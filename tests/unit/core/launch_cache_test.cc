// The cache of bound shapes is bounded, also while operations are under way.

#include "src/core/launch/launch_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/log.h"
#include "tests/support/peer_groups.h"

namespace seto {
namespace {

class Cache : public ::testing::Test {
 protected:
  Cache()
      : members_(support::one_thread_transports().front()->make({})),
        cache_({0, {2, &config_, 1, &tiers_, &costs_, &tiers_}, &members_[0]->peer_group()}) {
    call_.input = &input_;
    call_.output = &output_;
  }

  BoundShape* find(std::uint64_t count) {
    call_.count = count;
    const Result<BoundShape*> found = cache_.find(call_);
    EXPECT_TRUE(found.ok()) << found.status().text();
    return found.ok() ? found.value() : nullptr;
  }
  // True: the shape was kept.
  bool knows(std::uint64_t count) {
    const std::uint64_t before = cache_.bound();
    find(count);
    return cache_.bound() == before;
  }

  static constexpr std::uint64_t kMost = LaunchCache::kMostShapes;

  Tiers tiers_ = Tiers::flat(2);
  CostModel costs_;
  Config config_;
  float input_ = 0;
  float output_ = 0;
  Call call_;
  std::vector<std::unique_ptr<support::PeerGroupMember>> members_;
  LaunchCache cache_;
};

TEST_F(Cache, IsBoundedWhileAnOperationIsUnderWay) {
  BoundShape* const busy = find(1);
  busy->issue();
  for (std::uint64_t count = 2; count <= 2 * kMost; ++count) {
    find(count);
    ASSERT_LE(cache_.kept(), kMost);
  }
  EXPECT_EQ(cache_.kept(), kMost);
  EXPECT_TRUE(knows(1)) << "its operation is under way";
  EXPECT_EQ(find(1), busy);
  EXPECT_TRUE(knows(2 * kMost));
  EXPECT_FALSE(knows(2));

  busy->end();
  for (std::uint64_t count = 3 * kMost; count < 4 * kMost; ++count) find(count);
  EXPECT_FALSE(knows(1)) << "its operation has ended, and it was used least recently";
}

TEST_F(Cache, DropsTheShapeThatWasUsedLeastRecently) {
  for (std::uint64_t count = 1; count <= kMost; ++count) find(count);
  EXPECT_TRUE(knows(1));
  find(kMost + 1);
  EXPECT_TRUE(knows(1));
  EXPECT_FALSE(knows(2));
  EXPECT_EQ(cache_.kept(), kMost);
}

TEST_F(Cache, KeepsMoreOnlyForOperationsUnderWay) {
  std::vector<BoundShape*> shapes;
  for (std::uint64_t count = 1; count <= kMost + 10; ++count) {
    shapes.push_back(find(count));
    shapes.back()->issue();
  }
  EXPECT_EQ(cache_.kept(), kMost + 10);
  for (BoundShape* const shape : shapes) shape->end();
  find(kMost + 11);
  EXPECT_EQ(cache_.kept(), kMost);
}

// ---- a pinned algorithm that cannot run ----

TEST_F(Cache, WarnsOnceForEachCollectiveThatIgnoresThePin) {
  config_.algorithm = "hierarchical";
  const LogCapture log;
  for (std::uint64_t count = 1; count <= 3; ++count) find(count);
  ASSERT_EQ(log.lines().size(), 1U);
  EXPECT_TRUE(log.contains("all_reduce: hierarchical is pinned, but it is impossible here (there is one tier"));
  EXPECT_TRUE(log.contains("; the pin is ignored; it runs as "));
  call_.collective = Collective::reduce;
  find(1);
  EXPECT_EQ(log.lines().size(), 2U);
  EXPECT_TRUE(log.contains(" reduce: hierarchical is pinned"));
}

TEST_F(Cache, DoesNotWarnOfAPinThatIsUsed) {
  config_.algorithm = "ring";
  const LogCapture log;
  EXPECT_EQ(find(1)->algorithm->name, "ring");
  EXPECT_THAT(log.lines(), ::testing::IsEmpty());
}

TEST_F(Cache, TellsOnceWhatAPinThatIsUsedCosts) {
  config_.algorithm = "ring";
  set_log_level(LogLevel::info);
  const LogCapture log;
  for (std::uint64_t count = 1; count <= 3; ++count) find(count);
  set_log_level(LogLevel::warn);
  EXPECT_EQ(log.lines().size(), 1U);
  EXPECT_TRUE(log.contains("ring is pinned: "));
  EXPECT_TRUE(log.contains(" ms predicted, "));
}

}  // namespace
}  // namespace seto
