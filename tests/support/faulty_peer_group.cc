#include "tests/support/faulty_peer_group.h"

#include "tests/support/flows.h"

namespace seto::support {

class FaultySender final : public SendStream {
 public:
  FaultySender(FaultyCircle& circle, std::unique_ptr<SendStream> stream, Sent sent)
      : circle_(circle), stream_(std::move(stream)), sent_(sent), gate_{++circle.streams_, {}, {}} {}

  std::byte* acquire(Mark mark) override { return circle_.opens(gate_, mark) ? stream_->acquire(mark) : nullptr; }
  [[nodiscard]] bool lends() const override { return stream_->lends(); }
  bool lend(Mark mark, const std::byte* first, std::size_t stride) override {
    return circle_.opens(gate_, mark) && stream_->lend(mark, first, stride);
  }
  [[nodiscard]] bool taken(std::uint64_t operation) override { return stream_->taken(operation); }
  bool revoke(std::uint64_t operation) override { return stream_->revoke(operation); }
  [[nodiscard]] bool asks_size() const override { return stream_->asks_size(); }
  void tell_size(Mark mark, std::size_t size) override { stream_->tell_size(mark, size); }
  void commit(Mark mark) override {
    if (circle_.cut()) return;
    stream_->commit(mark);
    sent_.mark = mark;
    circle_.went_out(sent_);
  }

 private:
  FaultyCircle& circle_;
  std::unique_ptr<SendStream> stream_;
  Sent sent_;
  FaultyCircle::Gate gate_;
};

class FaultyReceiver final : public ReceiveStream {
 public:
  FaultyReceiver(FaultyCircle& circle, std::unique_ptr<ReceiveStream> stream)
      : circle_(circle), stream_(std::move(stream)), gate_{++circle.streams_, {}, {}} {}

  const std::byte* front(Mark mark) override { return circle_.opens(gate_, mark) ? stream_->front(mark) : nullptr; }
  void release(Mark mark) override { stream_->release(mark); }
  [[nodiscard]] bool borrows() const override { return stream_->borrows(); }
  bool hold(Mark mark) override { return stream_->hold(mark); }
  void let_go(Mark mark) override { stream_->let_go(mark); }
  [[nodiscard]] bool asks_size() const override { return stream_->asks_size(); }
  bool brings(Mark mark, std::size_t size) override { return stream_->brings(mark, size); }
  [[nodiscard]] bool places() const override { return stream_->places(); }
  void place(const Placement& placement) override { stream_->place(placement); }
  void displace(std::uint64_t operation) override { stream_->displace(operation); }

 private:
  FaultyCircle& circle_;
  std::unique_ptr<ReceiveStream> stream_;
  FaultyCircle::Gate gate_;
};

// Messages between two members. What is asked for again and again until it is there is a piece: each has its delay.
class FaultyPairSender final : public PairSender {
 public:
  FaultyPairSender(FaultyCircle& circle, std::unique_ptr<PairSender> stream, std::uint32_t receiver)
      : circle_(circle), stream_(std::move(stream)), sent_{{}, receiver, 0, Way::pair}, gate_{++circle.streams_, {}, {}} {}

  [[nodiscard]] std::uint64_t current() const override { return stream_->current() + lost_; }
  PairPiece acquire(const Letter& letter) override {
    const Mark mark = mark_of(current(), pieces_);
    if (circle_.cut() || !circle_.opens(gate_, mark)) return {};
    const PairPiece piece = stream_->acquire(letter);
    if (piece.state == PairPiece::State::refused) pieces_ = done_ = 0;
    piece_ = piece.size;
    size_ = letter.verdict == 0 ? letter.size : 0;
    sent_.mark = mark;
    return piece;
  }
  bool commit() override {
    done_ += piece_;
    ++pieces_;
    const bool last = done_ == size_;
    if (last) pieces_ = done_ = 0;
    if (circle_.cut()) {
      if (last) ++lost_;
      return last;
    }
    EXPECT_EQ(stream_->commit(), last);
    circle_.went_out(sent_);
    return last;
  }
  [[nodiscard]] Letter other_end() const override { return stream_->other_end(); }

 private:
  FaultyCircle& circle_;
  std::unique_ptr<PairSender> stream_;
  Sent sent_;
  FaultyCircle::Gate gate_;
  std::uint64_t lost_ = 0;  // messages that are over here, and not below
  std::uint64_t size_ = 0, done_ = 0, pieces_ = 0;
  std::size_t piece_ = 0;
};

class FaultyPairReceiver final : public PairReceiver {
 public:
  FaultyPairReceiver(FaultyCircle& circle, std::unique_ptr<PairReceiver> stream)
      : circle_(circle), stream_(std::move(stream)), gate_{++circle.streams_, {}, {}} {}

  [[nodiscard]] std::uint64_t current() const override { return stream_->current(); }
  PairPiece front(const Letter& letter) override {
    if (!circle_.opens(gate_, mark_of(current(), pieces_))) return {};
    const PairPiece piece = stream_->front(letter);
    if (piece.state == PairPiece::State::refused) pieces_ = 0;
    return piece;
  }
  bool release() override {
    const bool last = stream_->release();
    pieces_ = last ? 0 : pieces_ + 1;
    return last;
  }
  [[nodiscard]] Letter other_end() const override { return stream_->other_end(); }
  [[nodiscard]] bool knocks() const override { return stream_->knocks(); }
  [[nodiscard]] Letter at_the_door() const override { return stream_->at_the_door(); }

 private:
  FaultyCircle& circle_;
  std::unique_ptr<PairReceiver> stream_;
  FaultyCircle::Gate gate_;
  std::uint64_t pieces_ = 0;
};

Result<std::unique_ptr<SendStream>> FaultyCircle::open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                            const StreamGeometry& geometry) {
  SETO_ASSIGN(auto stream, circle_.open_send(address, receivers, geometry));
  return std::unique_ptr<SendStream>(new FaultySender(*this, std::move(stream), {address, receivers.front(), 0, Way::stream}));
}

Result<std::unique_ptr<ReceiveStream>> FaultyCircle::open_receive(StreamAddress address, const StreamGeometry& geometry) {
  SETO_ASSIGN(auto stream, circle_.open_receive(address, geometry));
  return std::unique_ptr<ReceiveStream>(new FaultyReceiver(*this, std::move(stream)));
}

Result<std::unique_ptr<PairSender>> FaultyCircle::open_pair_send(std::uint32_t receiver) {
  SETO_ASSIGN(auto stream, circle_.open_pair_send(receiver));
  return std::unique_ptr<PairSender>(new FaultyPairSender(*this, std::move(stream), receiver));
}

Result<std::unique_ptr<PairReceiver>> FaultyCircle::open_pair_receive(std::uint32_t sender) {
  SETO_ASSIGN(auto stream, circle_.open_pair_receive(sender));
  return std::unique_ptr<PairReceiver>(new FaultyPairReceiver(*this, std::move(stream)));
}

bool FaultyCircle::opens(Gate& gate, Mark mark) {
  Mark& granted = gate.granted[operation_of(mark) % 2];
  if (granted == mark) return true;
  if (faults_.hold > 0) {
    if (questions_++ % faults_.hold == 0) silence_ = random_();
    if ((mixed(silence_ + gate.id) & 1) != 0) {
      ++withheld_;
      return false;
    }
  }
  if (faults_.most_delay > 0) {
    const auto [left, fresh] = gate.empty_answers.try_emplace(mark, 0U);
    if (fresh) left->second = static_cast<std::uint32_t>(random_() % (faults_.most_delay + 1));
    if (left->second > 0) {
      --left->second;
      ++withheld_;
      return false;
    }
    gate.empty_answers.erase(left);
  }
  granted = mark;
  return true;
}

void FaultyCircle::went_out(const Sent& sent) {
  ++sent_;
  if (faults_.garbage) faults_.garbage(sent, random_());
}

}  // namespace seto::support
