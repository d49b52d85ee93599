// The moment at which the host executor names the destination of messages, in both orders of steps: an all_reduce in place
// receives into memory that it has to send first.

#include <array>

#include "tests/conformance/engine_world.h"
#include "tests/support/conformance.h"
#include "tests/support/tcp_peer_groups.h"
#include "transports/optional_streams.h"

namespace seto::support {
namespace {

// The calls of one rank.
struct Seen {
  std::uint64_t sent = 0;  // first messages of slices
  std::uint64_t first_until = ~std::uint64_t{0};
  std::uint64_t last_until = 0;
  bool ahead = false;        // a destination was named before its previous content was sent
  std::uint64_t placed = 0;  // messages that were received at their destination
};

class RecordingSender final : public SendStream {
 public:
  RecordingSender(std::unique_ptr<SendStream> stream, Seen* seen) : stream_(std::move(stream)), seen_(seen) {}
  std::byte* acquire(Mark mark) override { return stream_->acquire(mark); }
  void commit(Mark mark, std::size_t size) override {
    if (seen_ != nullptr) ++seen_->sent;
    stream_->commit(mark, size);
  }
  [[nodiscard]] std::uint64_t handed_over(std::uint64_t operation) const override { return stream_->handed_over(operation); }
  [[nodiscard]] std::uint64_t acknowledged(std::uint64_t operation) const override { return stream_->acknowledged(operation); }
  [[nodiscard]] std::uint64_t released(std::uint64_t operation) const override { return stream_->released(operation); }

 private:
  std::unique_ptr<SendStream> stream_;
  Seen* seen_;
};

class RecordingReceiver final : public ReceiveStream, private PlacingReceiver {
 public:
  RecordingReceiver(std::unique_ptr<ReceiveStream> stream, Seen& seen) : stream_(std::move(stream)), seen_(seen) {}
  const std::byte* front(Mark mark) override { return stream_->front(mark); }
  void release(Mark mark) override {
    const Placement& wanted = wanted_[operation_of(mark) % kWindow];
    const bool named = wanted.operation == operation_of(mark) && slice_of(mark) < wanted.until;
    if (named && stream_->front(mark) == wanted.first + slice_of(mark) * wanted.stride) ++seen_.placed;
    stream_->release(mark);
  }
  [[nodiscard]] SizedReceiver* sized() override { return stream_->sized(); }
  [[nodiscard]] PlacingReceiver* placing() override { return this; }

 private:
  void place(const Placement& placement) override {
    if (seen_.first_until == ~std::uint64_t{0}) seen_.first_until = placement.until;
    seen_.last_until = placement.until;
    seen_.ahead = seen_.ahead || placement.until > seen_.sent;
    wanted_[placement.operation % kWindow] = placement;
    stream_->placing()->place(placement);
  }
  void displace(std::uint64_t operation) override { stream_->placing()->displace(operation); }

  std::unique_ptr<ReceiveStream> stream_;
  Seen& seen_;
  std::array<Placement, kWindow> wanted_{};
};

// With two ranks, the first stream opened for sending carries this rank's own input.
class RecordingPeerGroup final : public PeerGroup {
 public:
  RecordingPeerGroup(PeerGroup& peer_group, Seen& seen) : peer_group_(peer_group), seen_(seen) {}
  [[nodiscard]] std::uint32_t members() const override { return peer_group_.members(); }
  Result<std::unique_ptr<SendStream>> open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                const StreamGeometry& geometry) override {
    SETO_ASSIGN(auto stream, peer_group_.open_send(address, receivers, geometry));
    slices_ = geometry.slices;
    return std::unique_ptr<SendStream>(new RecordingSender(std::move(stream), sends_++ == 0 ? &seen_ : nullptr));
  }
  Result<std::unique_ptr<ReceiveStream>> open_receive(StreamAddress address, const StreamGeometry& geometry) override {
    SETO_ASSIGN(auto stream, peer_group_.open_receive(address, geometry));
    return std::unique_ptr<ReceiveStream>(new RecordingReceiver(std::move(stream), seen_));
  }
  Result<std::unique_ptr<PairSender>> open_pair_send(std::uint32_t receiver) override {
    return peer_group_.open_pair_send(receiver);
  }
  Result<std::unique_ptr<PairReceiver>> open_pair_receive(std::uint32_t sender) override {
    return peer_group_.open_pair_receive(sender);
  }
  [[nodiscard]] PeerStatus& status() override { return peer_group_.status(); }
  void complete(std::uint64_t operation) override { peer_group_.complete(operation); }
  [[nodiscard]] Status failure() const override { return peer_group_.failure(); }

  [[nodiscard]] std::uint64_t slices() const { return slices_; }

 private:
  PeerGroup& peer_group_;
  Seen& seen_;
  std::uint64_t sends_ = 0;
  std::uint64_t slices_ = 0;
};

struct Outcome {
  std::vector<Seen> seen;                       // by rank
  std::vector<std::vector<std::byte>> results;  // by rank and operation
  std::uint64_t slices = 0;

  [[nodiscard]] std::uint64_t placed() const {
    std::uint64_t sum = 0;
    for (const Seen& each : seen) sum += each.placed;
    return sum;
  }
};

Outcome run(const PeerGroupTransport& transport, const Job& job, std::uint64_t operations, std::uint64_t seed) {
  SCOPED_TRACE(job.text() + (job.order == StepOrder::readiness ? ", in readiness order" : "") + ", seed " + std::to_string(seed));
  const auto ranks = static_cast<std::size_t>(job.ranks);
  Outcome outcome;
  outcome.seen.resize(ranks);
  const auto members = transport.make({.members = static_cast<std::uint32_t>(job.ranks)});
  std::vector<std::unique_ptr<RecordingPeerGroup>> peer_groups;
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    peer_groups.push_back(std::make_unique<RecordingPeerGroup>(members[rank]->peer_group(), outcome.seen[rank]));
    workers.push_back(std::make_unique<Worker>(job, static_cast<Rank>(rank), *peer_groups[rank]));
  }
  const auto all_done = [&] {
    return std::all_of(workers.begin(), workers.end(), [&](const auto& worker) { return worker->done() == operations; });
  };
  std::mt19937_64 random(seed);
  for (const Deadline until = Deadline::after_ms(kPatienceMs); !all_done() && !until.passed();)
    workers[random() % ranks]->turn(operations, random());
  EXPECT_TRUE(all_done());
  for (const auto& worker : workers) {
    EXPECT_EQ(worker->wrong(), 0U);
    EXPECT_FALSE(worker->touched_late());
    for (std::uint64_t operation = 1; operation <= worker->done(); ++operation)
      outcome.results.push_back(worker->result(operation));
  }
  outcome.slices = peer_groups[0]->slices();
  return outcome;
}

class EnginePlacing : public ::testing::TestWithParam<StepOrder> {
 protected:
  static Outcome run_ring(InPlace in_place, std::uint64_t slice_elements) {
    Job job{find_algorithm("ring", Collective::all_reduce), 2, DataType::float32, ReduceOp::sum, 100'000};
    job.slice_elements = slice_elements;
    job.in_place = in_place;
    job.order = GetParam();
    return run(tcp_transport(1), job, 1, 1);
  }
};

INSTANTIATE_TEST_SUITE_P(Order, EnginePlacing, ::testing::Values(StepOrder::skewed, StepOrder::readiness),
                         [](const auto& tested) { return tested.param == StepOrder::skewed ? "Skewed" : "Readiness"; });

TEST_P(EnginePlacing, OutOfPlaceEveryDestinationIsNamedAtOnce) {
  const Outcome outcome = run_ring(InPlace::no, 8'000);
  EXPECT_GT(outcome.slices, 3U);
  for (const Seen& seen : outcome.seen) EXPECT_EQ(seen.first_until, outcome.slices);
}

TEST_P(EnginePlacing, InPlaceNoDestinationIsNamedBeforeItsContentWasSent) {
  const Outcome outcome = run_ring(InPlace::yes, 8'000);
  EXPECT_GT(outcome.slices, 3U);
  for (const Seen& seen : outcome.seen) {
    EXPECT_EQ(seen.first_until, 0U);
    EXPECT_FALSE(seen.ahead);
    EXPECT_EQ(seen.last_until, outcome.slices);
  }
}

TEST_P(EnginePlacing, InPlaceTheSameHoldsForOneSlice) {
  const Outcome outcome = run_ring(InPlace::yes, 100'000);
  EXPECT_EQ(outcome.slices, 1U);
  for (const Seen& seen : outcome.seen) {
    EXPECT_FALSE(seen.ahead);
    EXPECT_EQ(seen.last_until, 1U);
  }
}

class EnginePlacingOverSockets : public ::testing::TestWithParam<const PeerGroupTransport*> {};

INSTANTIATE_TEST_SUITE_P(All, EnginePlacingOverSockets,
                         ::testing::Values(&tcp_transport(1), &tcp_transport(3), &tls_transport(1)), name_of_one);

// Every algorithm, out of place and in place, with several operations under way: both orders place messages, and give the same
// bits.
TEST_P(EnginePlacingOverSockets, TheReadinessOrderPlacesLikeTheSkewedOrder) {
  std::uint64_t seed = 0, turn = 0;
  std::uint64_t placed_skewed = 0;
  std::uint64_t placed_ready = 0;
  for (const Algorithm& algorithm : algorithms())
    for (const InPlace in_place : {InPlace::no, InPlace::yes}) {
      Job job{&algorithm, 4, DataType::float32, ReduceOp::sum, 40'000};
      job.slice_elements = 3'000;
      job.root = 1;
      job.in_place = in_place;
      if (in_place == InPlace::yes && !shared_at(job, job.root)) continue;
      if (algorithm.collective == Collective::barrier || !algorithm.refuses(shape_of(job), tiers_for(job)).empty()) continue;
      if (++turn % kEvery != 0) continue;
      const Outcome skewed = run(*GetParam(), job, 3, ++seed);
      job.order = StepOrder::readiness;
      const Outcome ready = run(*GetParam(), job, 3, ++seed);
      ASSERT_EQ(skewed.results, ready.results) << job.text();
      if (skewed.placed() > 0) {
        EXPECT_GT(ready.placed(), 0U) << job.text();
      }
      placed_skewed += skewed.placed();
      placed_ready += ready.placed();
    }
  EXPECT_GT(placed_skewed, 500U / kEvery);
  EXPECT_GT(placed_ready, placed_skewed / 2);
}

// After a run is abandoned, its buffers are not written any more, whatever its peer still sends.
TEST_P(EnginePlacing, AWithdrawnRunIsNotWritten) {
  const auto broadcast = std::find_if(algorithms().begin(), algorithms().end(),
                                      [](const Algorithm& algorithm) { return algorithm.collective == Collective::broadcast; });
  Job job{&*broadcast, 2, DataType::uint8, ReduceOp::sum, 3'000'000};
  job.slice_elements = 512 << 10;
  job.order = GetParam();
  const auto members = tcp_transport(1).make({});
  Worker root(job, 0, members[0]->peer_group());
  Worker other(job, 1, members[1]->peer_group());
  std::mt19937_64 random(1);
  for (const Deadline until = Deadline::after_ms(kPatienceMs); !other.has_output() && !until.passed();) {
    root.turn(1, random());
    other.turn(1, random());
  }
  ASSERT_TRUE(other.has_output());
  ASSERT_EQ(other.done(), 0U);
  ASSERT_TRUE(other.withdraw());
  for (int turns = 0; turns < 10'000; ++turns) {
    root.turn(1, random());
    (void)members[1]->peer_group().status().completed_by(0);  // pumps
  }
  EXPECT_FALSE(other.withdrawn_is_touched());
}

}  // namespace
}  // namespace seto::support
