#include "tests/support/faulty_peer_group.h"

#include "tests/support/flows.h"
#include "transports/partial_lender.h"

namespace seto::support {

class FaultySender final : public SendStream, public PartialLender {
 public:
  FaultySender(FaultyPeerGroup& peer_group, std::unique_ptr<SendStream> stream, Sent sent)
      : peer_group_(peer_group),
        stream_(std::move(stream)),
        lender_(stream_->lending() != nullptr ? stream_->lending() : dynamic_cast<PartialLender*>(stream_.get())),
        sent_(sent),
        gate_{++peer_group.streams_, {}, {}} {}

  std::byte* acquire(Mark mark) override { return peer_group_.opens(gate_, mark) ? stream_->acquire(mark) : nullptr; }
  void commit(Mark mark, std::size_t size) override {
    if (peer_group_.cut()) return;
    stream_->commit(mark, size);
    sent_.mark = mark;
    peer_group_.went_out(sent_);
  }
  [[nodiscard]] std::uint64_t handed_over(std::uint64_t operation) const override { return stream_->handed_over(operation); }
  [[nodiscard]] std::uint64_t acknowledged(std::uint64_t operation) const override { return stream_->acknowledged(operation); }
  [[nodiscard]] std::uint64_t released(std::uint64_t operation) const override { return stream_->released(operation); }
  [[nodiscard]] LendingSender* lending() override { return stream_->lending() == nullptr ? nullptr : this; }

  bool lend(Mark mark, const std::byte* first, std::size_t stride) override {
    return lender_ != nullptr && peer_group_.opens(gate_, mark) && lender_->lend(mark, first, stride);
  }
  [[nodiscard]] bool taken(std::uint64_t operation) override { return lender_ == nullptr || lender_->taken(operation); }
  bool revoke(std::uint64_t operation) override { return lender_ == nullptr || lender_->revoke(operation); }

 private:
  FaultyPeerGroup& peer_group_;
  std::unique_ptr<SendStream> stream_;
  LendingSender* lender_;  // null: the stream lends nothing
  Sent sent_;
  FaultyPeerGroup::Gate gate_;
};

class FaultyReceiver final : public ReceiveStream {
 public:
  FaultyReceiver(FaultyPeerGroup& peer_group, std::unique_ptr<ReceiveStream> stream)
      : peer_group_(peer_group), stream_(std::move(stream)), gate_{++peer_group.streams_, {}, {}} {}

  const std::byte* front(Mark mark) override { return peer_group_.opens(gate_, mark) ? stream_->front(mark) : nullptr; }
  void release(Mark mark) override { stream_->release(mark); }
  [[nodiscard]] SizedReceiver* sized() override { return stream_->sized(); }
  [[nodiscard]] BorrowingReceiver* borrowing() override { return stream_->borrowing(); }
  [[nodiscard]] PlacingReceiver* placing() override { return stream_->placing(); }

 private:
  FaultyPeerGroup& peer_group_;
  std::unique_ptr<ReceiveStream> stream_;
  FaultyPeerGroup::Gate gate_;
};

// Messages between two members. A piece is what the receiver polls until it is there; each piece has its own delay.
class FaultyPairSender final : public PairSender {
 public:
  FaultyPairSender(FaultyPeerGroup& peer_group, std::unique_ptr<PairSender> stream, std::uint32_t receiver)
      : peer_group_(peer_group),
        stream_(std::move(stream)),
        sent_{{}, receiver, 0, Way::pair},
        gate_{++peer_group.streams_, {}, {}} {}

  [[nodiscard]] std::uint64_t current() const override { return stream_->current() + lost_; }
  PairPiece acquire(const MessageHeader& header) override {
    const Mark mark = mark_of(current(), pieces_);
    if (peer_group_.cut() || !peer_group_.opens(gate_, mark)) return {};
    const PairPiece piece = stream_->acquire(header);
    if (piece.state == PairPiece::State::refused) pieces_ = done_ = 0;
    piece_ = piece.size;
    size_ = header.verdict == 0 ? header.size : 0;
    sent_.mark = mark;
    return piece;
  }
  bool commit() override {
    done_ += piece_;
    ++pieces_;
    const bool last = done_ == size_;
    if (last) pieces_ = done_ = 0;
    if (peer_group_.cut()) {
      if (last) ++lost_;
      return last;
    }
    EXPECT_EQ(stream_->commit(), last);
    peer_group_.went_out(sent_);
    return last;
  }
  [[nodiscard]] MessageHeader other_end() const override { return stream_->other_end(); }

 private:
  FaultyPeerGroup& peer_group_;
  std::unique_ptr<PairSender> stream_;
  Sent sent_;
  FaultyPeerGroup::Gate gate_;
  std::uint64_t lost_ = 0;  // messages that have ended here but not in the medium below
  std::uint64_t size_ = 0, done_ = 0, pieces_ = 0;
  std::size_t piece_ = 0;
};

class FaultyPairReceiver final : public PairReceiver {
 public:
  FaultyPairReceiver(FaultyPeerGroup& peer_group, std::unique_ptr<PairReceiver> stream)
      : peer_group_(peer_group), stream_(std::move(stream)), gate_{++peer_group.streams_, {}, {}} {}

  [[nodiscard]] std::uint64_t current() const override { return stream_->current(); }
  PairPiece front(const MessageHeader& header) override {
    if (!peer_group_.opens(gate_, mark_of(current(), pieces_))) return {};
    const PairPiece piece = stream_->front(header);
    if (piece.state == PairPiece::State::refused) pieces_ = 0;
    return piece;
  }
  bool release() override {
    const bool last = stream_->release();
    pieces_ = last ? 0 : pieces_ + 1;
    return last;
  }
  [[nodiscard]] MessageHeader other_end() const override { return stream_->other_end(); }
  [[nodiscard]] bool has_pending() const override { return stream_->has_pending(); }
  [[nodiscard]] MessageHeader pending_header() const override { return stream_->pending_header(); }

 private:
  FaultyPeerGroup& peer_group_;
  std::unique_ptr<PairReceiver> stream_;
  FaultyPeerGroup::Gate gate_;
  std::uint64_t pieces_ = 0;
};

Result<std::unique_ptr<SendStream>> FaultyPeerGroup::open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                               const StreamGeometry& geometry) {
  SETO_ASSIGN(auto stream, peer_group_.open_send(address, receivers, geometry));
  return std::unique_ptr<SendStream>(new FaultySender(*this, std::move(stream), {address, receivers.front(), 0, Way::stream}));
}

Result<std::unique_ptr<ReceiveStream>> FaultyPeerGroup::open_receive(StreamAddress address, const StreamGeometry& geometry) {
  SETO_ASSIGN(auto stream, peer_group_.open_receive(address, geometry));
  return std::unique_ptr<ReceiveStream>(new FaultyReceiver(*this, std::move(stream)));
}

Result<std::unique_ptr<PairSender>> FaultyPeerGroup::open_pair_send(std::uint32_t receiver) {
  SETO_ASSIGN(auto stream, peer_group_.open_pair_send(receiver));
  return std::unique_ptr<PairSender>(new FaultyPairSender(*this, std::move(stream), receiver));
}

Result<std::unique_ptr<PairReceiver>> FaultyPeerGroup::open_pair_receive(std::uint32_t sender) {
  SETO_ASSIGN(auto stream, peer_group_.open_pair_receive(sender));
  return std::unique_ptr<PairReceiver>(new FaultyPairReceiver(*this, std::move(stream)));
}

bool FaultyPeerGroup::opens(Gate& gate, Mark mark) {
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

void FaultyPeerGroup::went_out(const Sent& sent) {
  ++sent_;
  if (faults_.garbage) faults_.garbage(sent, random_());
}

}  // namespace seto::support
