// When an engine says where messages belong: in place, an all_reduce receives into memory that it has to send first.

#include "tests/conformance/engine_world.h"
#include "tests/support/tcp_peer_groups.h"

namespace seto::support {
namespace {

// What one rank said and did.
struct Seen {
  std::uint64_t sent = 0;  // first messages of slices
  std::uint64_t first_until = ~std::uint64_t{0};
  std::uint64_t last_until = 0;
  bool ahead = false;  // a place was named before what lay there was sent
};

class SeeingSender final : public SendStream {
 public:
  SeeingSender(std::unique_ptr<SendStream> stream, Seen* seen) : stream_(std::move(stream)), seen_(seen) {}
  std::byte* acquire(Mark mark) override { return stream_->acquire(mark); }
  void commit(Mark mark) override {
    if (seen_ != nullptr) ++seen_->sent;
    stream_->commit(mark);
  }
  [[nodiscard]] bool asks_size() const override { return stream_->asks_size(); }
  void tell_size(Mark mark, std::size_t size) override { stream_->tell_size(mark, size); }

 private:
  std::unique_ptr<SendStream> stream_;
  Seen* seen_;
};

class SeeingReceiver final : public ReceiveStream {
 public:
  SeeingReceiver(std::unique_ptr<ReceiveStream> stream, Seen& seen) : stream_(std::move(stream)), seen_(seen) {}
  const std::byte* front(Mark mark) override { return stream_->front(mark); }
  void release(Mark mark) override { stream_->release(mark); }
  [[nodiscard]] bool asks_size() const override { return stream_->asks_size(); }
  bool brings(Mark mark, std::size_t size) override { return stream_->brings(mark, size); }
  [[nodiscard]] bool places() const override { return true; }
  void place(const Placement& placement) override {
    if (seen_.first_until == ~std::uint64_t{0}) seen_.first_until = placement.until;
    seen_.last_until = placement.until;
    seen_.ahead = seen_.ahead || placement.until > seen_.sent;
    stream_->place(placement);
  }
  void displace(std::uint64_t operation) override { stream_->displace(operation); }

 private:
  std::unique_ptr<ReceiveStream> stream_;
  Seen& seen_;
};

// Of two ranks the first stream that is opened for sending carries what this rank has at first.
class SeeingCircle final : public Circle {
 public:
  SeeingCircle(Circle& circle, Seen& seen) : circle_(circle), seen_(seen) {}
  [[nodiscard]] std::uint32_t members() const override { return circle_.members(); }
  Result<std::unique_ptr<SendStream>> open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                const StreamGeometry& geometry) override {
    SETO_ASSIGN(auto stream, circle_.open_send(address, receivers, geometry));
    slices_ = geometry.slices;
    return std::unique_ptr<SendStream>(new SeeingSender(std::move(stream), sends_++ == 0 ? &seen_ : nullptr));
  }
  Result<std::unique_ptr<ReceiveStream>> open_receive(StreamAddress address, const StreamGeometry& geometry) override {
    SETO_ASSIGN(auto stream, circle_.open_receive(address, geometry));
    return std::unique_ptr<ReceiveStream>(new SeeingReceiver(std::move(stream), seen_));
  }
  void begin(const Note& note) override { circle_.begin(note); }
  void complete(std::uint64_t operation) override { circle_.complete(operation); }
  [[nodiscard]] std::uint64_t window() const override { return circle_.window(); }
  bool note_of(std::uint32_t member, std::uint64_t operation, Note& note) const override {
    return circle_.note_of(member, operation, note);
  }
  [[nodiscard]] std::uint64_t completed_by(std::uint32_t member) const override { return circle_.completed_by(member); }
  void leave(Fate fate) override { circle_.leave(fate); }
  [[nodiscard]] Fate fate_of(std::uint32_t member) const override { return circle_.fate_of(member); }
  [[nodiscard]] Status failure() const override { return circle_.failure(); }

  [[nodiscard]] std::uint64_t slices() const { return slices_; }

 private:
  Circle& circle_;
  Seen& seen_;
  std::uint64_t sends_ = 0;
  std::uint64_t slices_ = 0;
};

struct Outcome {
  Seen seen[2];
  std::uint64_t slices = 0;
};

Outcome run_ring(InPlace in_place, std::uint64_t slice_elements) {
  const auto ring = std::find_if(algorithms().begin(), algorithms().end(), [](const Algorithm& algorithm) {
    return algorithm.collective == Collective::all_reduce && algorithm.name == "ring";
  });
  Job job{&*ring, 2, DataType::float32, ReduceOp::sum, 100'000};
  job.slice_elements = slice_elements;
  job.in_place = in_place;
  Outcome outcome;
  const auto members = tcp_transport(1).make({});
  std::vector<std::unique_ptr<SeeingCircle>> circles;
  std::vector<std::unique_ptr<Worker>> workers;
  for (Rank rank = 0; rank < 2; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    circles.push_back(std::make_unique<SeeingCircle>(members[at]->circle(), outcome.seen[at]));
    workers.push_back(std::make_unique<Worker>(job, rank, *circles[at]));
  }
  std::mt19937_64 random(1);
  for (int turns = 0; turns < 1'000'000 && workers[0]->done() + workers[1]->done() < 2; ++turns)
    workers[random() % 2]->turn(1, random());
  for (const auto& worker : workers) {
    EXPECT_EQ(worker->done(), 1U);
    EXPECT_EQ(worker->wrong(), 0U);
  }
  outcome.slices = circles[0]->slices();
  return outcome;
}

TEST(EnginePlacing, OutOfPlaceAllIsNamedAtOnce) {
  const Outcome outcome = run_ring(InPlace::no, 8'000);
  EXPECT_GT(outcome.slices, 3U);
  for (const Seen& seen : outcome.seen) EXPECT_EQ(seen.first_until, outcome.slices);
}

TEST(EnginePlacing, InPlaceNothingIsNamedBeforeItWasSent) {
  const Outcome outcome = run_ring(InPlace::yes, 8'000);
  EXPECT_GT(outcome.slices, 3U);
  for (const Seen& seen : outcome.seen) {
    EXPECT_EQ(seen.first_until, 0U);
    EXPECT_FALSE(seen.ahead);
    EXPECT_EQ(seen.last_until, outcome.slices);
  }
}

TEST(EnginePlacing, NorOfOneSlice) {
  const Outcome outcome = run_ring(InPlace::yes, 100'000);
  EXPECT_EQ(outcome.slices, 1U);
  for (const Seen& seen : outcome.seen) {
    EXPECT_FALSE(seen.ahead);
    EXPECT_EQ(seen.last_until, 1U);
  }
}

// Over a run that is given up nothing comes any more, whatever its peer still sends.
TEST(EnginePlacing, AWithdrawnRunIsLeftAlone) {
  const auto broadcast = std::find_if(algorithms().begin(), algorithms().end(),
                                      [](const Algorithm& algorithm) { return algorithm.collective == Collective::broadcast; });
  Job job{&*broadcast, 2, DataType::uint8, ReduceOp::sum, 3'000'000};
  job.slice_elements = 512 << 10;
  const auto members = tcp_transport(1).make({});
  Worker root(job, 0, members[0]->circle());
  Worker other(job, 1, members[1]->circle());
  std::mt19937_64 random(1);
  for (int turns = 0; turns < 1'000'000 && !other.has_output(); ++turns) {
    root.turn(1, random());
    other.turn(1, random());
  }
  ASSERT_TRUE(other.has_output());
  ASSERT_EQ(other.done(), 0U);
  ASSERT_TRUE(other.withdraw());
  for (int turns = 0; turns < 10'000; ++turns) {
    root.turn(1, random());
    (void)members[1]->circle().completed_by(0);  // pumps
  }
  EXPECT_FALSE(other.withdrawn_is_touched());
}

}  // namespace
}  // namespace seto::support
