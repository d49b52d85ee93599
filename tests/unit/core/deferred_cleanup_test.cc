// A rank keeps memory for slower peers after it has destroyed its end of a communicator, and gives it back in time.

#include "src/core/connect/deferred_cleanup.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/unit/core/scripted_ranks.h"

namespace seto::testing {
namespace {

constexpr std::uint64_t kIssued = 6;

class LeftBehind : public ::testing::Test {
 protected:
  LeftBehind() {
    ConnectedRanks connected = ranks_.connected();
    auto streams = std::make_shared<int>(0);
    streams_ = streams;
    cleanup_ = std::make_unique<DeferredCleanup>(
        DeferredCleanup::Parts{std::move(connected.connections), std::move(connected.peer_group), std::move(streams), kIssued});
  }
  [[nodiscard]] bool streams_are_kept() const { return !streams_.expired(); }

  ScriptedRanks ranks_{3};
  std::weak_ptr<int> streams_;
  std::unique_ptr<DeferredCleanup> cleanup_;
};

TEST_F(LeftBehind, StreamsStayUntilEveryPeerHasCompletedTheLastOperation) {
  EXPECT_FALSE(cleanup_->done());
  EXPECT_TRUE(streams_are_kept());
  ranks_.rank(1).completed = kIssued;
  ranks_.rank(2).completed = kIssued - 1;
  EXPECT_FALSE(cleanup_->done());
  EXPECT_TRUE(streams_are_kept());
  ranks_.rank(2).completed = kIssued;
  EXPECT_FALSE(cleanup_->done()) << "a peer may still ask how this rank left";
  EXPECT_FALSE(streams_are_kept());
  EXPECT_GT(ranks_.group->departed_now, 0U) << "memory goes back that no peer reads";
}

TEST_F(LeftBehind, TheBoardStaysUntilEveryPeerHasDeparted) {
  ranks_.rank(1).completed = ranks_.rank(2).completed = kIssued;
  ranks_.rank(1).departed = true;
  EXPECT_FALSE(cleanup_->done());
  ranks_.rank(2).departed = true;
  EXPECT_TRUE(cleanup_->done());
}

TEST_F(LeftBehind, APeerThatHasLeftReadsNoStreams) {
  ranks_.rank(1).fate = fate(Code::timeout, 1);
  ranks_.rank(2).completed = kIssued;
  EXPECT_FALSE(cleanup_->done());
  EXPECT_FALSE(streams_are_kept());
}

// A frozen process may read on when it continues, so only the end of a process counts, not its death.
TEST_F(LeftBehind, AProcessThatHasEndedReadsNothingAndAFrozenOneMay) {
  ranks_.rank(1).departed = true;
  ranks_.connection[2]->is_dead = true;
  EXPECT_FALSE(cleanup_->done());
  EXPECT_TRUE(streams_are_kept());
  ranks_.connection[2]->has_ended = true;
  EXPECT_TRUE(cleanup_->done());
  EXPECT_FALSE(streams_are_kept());
}

TEST_F(LeftBehind, ThisRankItselfIsNotWaitedFor) {
  ranks_.rank(0).completed = 0;
  ranks_.rank(1).departed = ranks_.rank(2).departed = true;
  EXPECT_TRUE(cleanup_->done());
}

TEST(LeaveRanks, TellsThePeersThatThisRankLeavesAndByWhom) {
  const std::shared_ptr<Context> context = Context::create(Config{}).value();
  ScriptedRanks ranks(2);
  leave_ranks(*context, ranks.connected(), {kIssued, false, nullptr});
  EXPECT_EQ(ranks.rank(0).fate.reason, static_cast<std::uint32_t>(Code::invalid_usage));
  EXPECT_EQ(ranks.rank(0).fate.culprit, 0U);
  EXPECT_GT(ranks.group.use_count(), 1) << "the context keeps the board";
  ranks.rank(1).departed = true;
  context->run_cleanups();
  EXPECT_EQ(ranks.group.use_count(), 1) << "no peer needs it any more";
}

// A communicator that failed has told its reason before; leaving must not replace it.
TEST(LeaveRanks, KeepsTheReasonThatAFailedCommunicatorGave) {
  const std::shared_ptr<Context> context = Context::create(Config{}).value();
  ScriptedRanks ranks(2);
  ranks.rank(0).fate = fate(Code::timeout, 1);
  leave_ranks(*context, ranks.connected(), {kIssued, true, nullptr});
  EXPECT_EQ(ranks.rank(0).fate.reason, static_cast<std::uint32_t>(Code::timeout));
  EXPECT_EQ(ranks.rank(0).fate.culprit, 1U);
}

}  // namespace
}  // namespace seto::testing
