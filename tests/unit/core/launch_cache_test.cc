// The cache of bound shapes is bounded, also while operations are under way.

#include "src/core/launch/launch_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/log.h"
#include "src/core/launch/point_to_point.h"
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

// ---- lending ----

// Counts the streams that are asked whether they lend. None does.
class AskedPeerGroup final : public PeerGroup {
 public:
  explicit AskedPeerGroup(PeerGroup& own) : own_(own) {}

  [[nodiscard]] std::uint32_t members() const override { return own_.members(); }
  [[nodiscard]] PeerStatus& status() override { return own_.status(); }
  Result<std::unique_ptr<SendStream>> open_send(StreamAddress, std::span<const std::uint32_t>, const StreamGeometry&) override {
    return std::unique_ptr<SendStream>(new Stream(asked));
  }
  Result<std::unique_ptr<ReceiveStream>> open_receive(StreamAddress address, const StreamGeometry& geometry) override {
    return own_.open_receive(address, geometry);
  }
  Result<std::unique_ptr<PairSender>> open_pair_send(std::uint32_t receiver) override { return own_.open_pair_send(receiver); }
  Result<std::unique_ptr<PairReceiver>> open_pair_receive(std::uint32_t sender) override {
    return own_.open_pair_receive(sender);
  }
  void complete(std::uint64_t operation) override { own_.complete(operation); }
  [[nodiscard]] Status failure() const override { return own_.failure(); }

  int asked = 0;

 private:
  class Stream final : public SendStream {
   public:
    explicit Stream(int& asked) : asked_(asked) {}
    std::byte* acquire(Mark) override { return nullptr; }
    void commit(Mark, std::size_t) override {}
    [[nodiscard]] std::uint64_t handed_over(std::uint64_t) const override { return 0; }
    [[nodiscard]] std::uint64_t acknowledged(std::uint64_t) const override { return 0; }
    [[nodiscard]] std::uint64_t released(std::uint64_t) const override { return 0; }
    [[nodiscard]] LendingSender* lending() override {
      ++asked_;
      return nullptr;
    }

   private:
    int& asked_;
  };

  PeerGroup& own_;
};

class LendingCache : public Cache {
 protected:
  // Whether a broadcast of so many bytes may be lent to the other rank.
  bool lends(const CostModel& costs, const Tiers& tiers, std::uint64_t bytes) {
    AskedPeerGroup peer_group(members_[0]->peer_group());
    LaunchCache cache({0, {2, &config_, 1, &tiers, &costs, &tiers}, &peer_group});
    call_.collective = Collective::broadcast;
    call_.count = bytes / sizeof(float);
    EXPECT_TRUE(cache.find(call_).ok());
    return peer_group.asked > 0;
  }
};

TEST_F(LendingCache, FollowsTheConstantsOfTheNode) {
  EXPECT_TRUE(lends(costs_, tiers_, 16 << 10)) << "shipped";
  EXPECT_FALSE(lends(costs_, tiers_, (16 << 10) - 64));
  costs_.source = CostSource::measured;
  costs_.node.long_message_bytes = 40 << 10;
  EXPECT_TRUE(lends(costs_, tiers_, 40 << 10));
  EXPECT_FALSE(lends(costs_, tiers_, (40 << 10) - 64));
  costs_.node.long_message_bytes = 8 << 10;
  EXPECT_TRUE(lends(costs_, tiers_, 8 << 10));
  EXPECT_FALSE(lends(costs_, tiers_, (8 << 10) - 64));
}

TEST_F(LendingCache, IsAsShippedInADeterministicCallAndBeyondTheNode) {
  costs_.source = CostSource::measured;
  costs_.node.long_message_bytes = 40 << 10;
  const Tiers hosts = made_up_tiers(2, 2, 1).value();
  EXPECT_TRUE(lends(costs_, hosts, 16 << 10)) << "beyond the node";
  EXPECT_FALSE(lends(costs_, hosts, (16 << 10) - 64));
  call_.deterministic = true;
  EXPECT_TRUE(lends(costs_, tiers_, 16 << 10)) << "deterministic";
  EXPECT_FALSE(lends(costs_, tiers_, (16 << 10) - 64));
}

// ---- ways of storing ----

TEST_F(Cache, TriesTheWaysOfStoringThatTheCacheAsksFor) {
  const auto streams = [this](double cached_bytes) {
    costs_.node.cached_bytes = cached_bytes;
    LaunchCache cache({0, {2, &config_, 1, &tiers_, &costs_, &tiers_}, &members_[0]->peer_group()});
    call_.count = (512 << 10) / sizeof(float);
    StoreTuner& stores = *cache.find(call_).value()->stores;
    bool found = false;
    for (int call = 0; call < 8; ++call) found |= stores.next().results == Store::past_cache;
    return found;
  };
  EXPECT_FALSE(streams(1 << 20));
  EXPECT_TRUE(streams(512 << 10));
}

TEST_F(Cache, MessagesTryTheWaysOfStoringThatTheCacheAsksFor) {
  PointToPoint transfers(0, 2, members_[0]->peer_group(), SlotStore::automatic);
  std::vector<std::byte> source(512 << 10);
  const Transfer send{LocalTransfer::Direction::send, 1, source.data(), nullptr, source.size(), DataType::uint8, {}};
  const auto streams = [&] {
    TransferCall call;
    call.transfers = {&send, 1};
    StoreTuner& stores = *transfers.prepare(call).stores;
    bool found = false;
    for (int turn = 0; turn < 8; ++turn) found |= stores.next().results == Store::past_cache;
    return found;
  };
  EXPECT_FALSE(streams()) << "shipped";
  transfers.use({512 << 10, 16 << 20});
  EXPECT_TRUE(streams()) << "also of a size that was used before";
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
