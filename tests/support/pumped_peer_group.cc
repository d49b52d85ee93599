#include "tests/support/pumped_peer_group.h"

namespace seto::support {
namespace {

class PumpedSender final : public SendStream, private LendingSender {
 public:
  PumpedSender(std::unique_ptr<SendStream> stream, const Pump& pump) : stream_(std::move(stream)), pump_(pump) {}
  std::byte* acquire(Mark mark) override {
    pump_();
    return stream_->acquire(mark);
  }
  void commit(Mark mark, std::size_t size) override { stream_->commit(mark, size); }
  [[nodiscard]] std::uint64_t handed_over(std::uint64_t operation) const override {
    pump_();
    return stream_->handed_over(operation);
  }
  [[nodiscard]] std::uint64_t acknowledged(std::uint64_t operation) const override {
    pump_();
    return stream_->acknowledged(operation);
  }
  [[nodiscard]] std::uint64_t released(std::uint64_t operation) const override {
    pump_();
    return stream_->released(operation);
  }
  [[nodiscard]] LendingSender* lending() override { return this; }
  [[nodiscard]] GpuSender* from_gpu() override { return stream_->from_gpu(); }

 private:
  bool lend(Mark mark, const std::byte* first, std::size_t stride) override {
    pump_();
    return stream_->lending()->lend(mark, first, stride);
  }
  [[nodiscard]] bool taken(std::uint64_t operation) override {
    pump_();
    return stream_->lending()->taken(operation);
  }
  bool revoke(std::uint64_t operation) override {
    pump_();
    return stream_->lending()->revoke(operation);
  }

  std::unique_ptr<SendStream> stream_;
  const Pump& pump_;
};

class PumpedReceiver final : public ReceiveStream {
 public:
  PumpedReceiver(std::unique_ptr<ReceiveStream> stream, const Pump& pump) : stream_(std::move(stream)), pump_(pump) {}
  const std::byte* front(Mark mark) override {
    pump_();
    return stream_->front(mark);
  }
  void release(Mark mark) override { stream_->release(mark); }
  [[nodiscard]] SizedReceiver* sized() override { return stream_->sized(); }
  [[nodiscard]] PlacingReceiver* placing() override { return stream_->placing(); }

 private:
  std::unique_ptr<ReceiveStream> stream_;
  const Pump& pump_;
};

class PumpedPairSender final : public PairSender {
 public:
  PumpedPairSender(std::unique_ptr<PairSender> pair, const Pump& pump) : pair_(std::move(pair)), pump_(pump) {}
  [[nodiscard]] std::uint64_t current() const override { return pair_->current(); }
  PairPiece acquire(const MessageHeader& header) override {
    pump_();
    return pair_->acquire(header);
  }
  bool commit() override { return pair_->commit(); }
  [[nodiscard]] MessageHeader other_end() const override { return pair_->other_end(); }

 private:
  std::unique_ptr<PairSender> pair_;
  const Pump& pump_;
};

class PumpedPairReceiver final : public PairReceiver {
 public:
  PumpedPairReceiver(std::unique_ptr<PairReceiver> pair, const Pump& pump) : pair_(std::move(pair)), pump_(pump) {}
  [[nodiscard]] std::uint64_t current() const override { return pair_->current(); }
  PairPiece front(const MessageHeader& header) override {
    pump_();
    return pair_->front(header);
  }
  bool release() override { return pair_->release(); }
  [[nodiscard]] MessageHeader other_end() const override { return pair_->other_end(); }
  [[nodiscard]] bool has_pending() const override {
    pump_();
    return pair_->has_pending();
  }
  [[nodiscard]] MessageHeader pending_header() const override { return pair_->pending_header(); }

 private:
  std::unique_ptr<PairReceiver> pair_;
  const Pump& pump_;
};

class PumpedStatus final : public PeerStatus {
 public:
  PumpedStatus(PeerStatus& status, const Pump& pump) : status_(status), pump_(pump) {}
  void begin(const Note& note) override { status_.begin(note); }
  bool note_of(std::uint32_t member, std::uint64_t operation, Note& note) const override {
    pump_();
    return status_.note_of(member, operation, note);
  }
  [[nodiscard]] std::uint64_t completed_by(std::uint32_t member) const override {
    pump_();
    (void)status_.completed_by(member);  // requests a new copy, which arrives at once
    return status_.completed_by(member);
  }
  void leave(Fate fate) override { status_.leave(fate); }
  [[nodiscard]] Fate fate_of(std::uint32_t member) const override { return status_.fate_of(member); }
  [[nodiscard]] std::uint64_t departures() const override { return status_.departures(); }
  void explain(std::string_view why) override { status_.explain(why); }
  [[nodiscard]] std::string explanation_of(std::uint32_t member) const override { return status_.explanation_of(member); }
  [[nodiscard]] bool departed(std::uint32_t member) const override { return status_.departed(member); }
  [[nodiscard]] bool silent(std::uint32_t member) const override { return status_.silent(member); }

 private:
  PeerStatus& status_;
  const Pump& pump_;
};

}  // namespace

PumpedPeerGroup::PumpedPeerGroup(PeerGroup& peer_group, Pump pump)
    : peer_group_(peer_group), pump_(std::move(pump)), status_(new PumpedStatus(peer_group.status(), pump_)) {}

PumpedPeerGroup::~PumpedPeerGroup() = default;

Result<std::unique_ptr<SendStream>> PumpedPeerGroup::open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                               const StreamGeometry& geometry) {
  SETO_ASSIGN(auto stream, peer_group_.open_send(address, receivers, geometry));
  return std::unique_ptr<SendStream>(new PumpedSender(std::move(stream), pump_));
}

Result<std::unique_ptr<ReceiveStream>> PumpedPeerGroup::open_receive(StreamAddress address, const StreamGeometry& geometry) {
  SETO_ASSIGN(auto stream, peer_group_.open_receive(address, geometry));
  return std::unique_ptr<ReceiveStream>(new PumpedReceiver(std::move(stream), pump_));
}

Result<std::unique_ptr<PairSender>> PumpedPeerGroup::open_pair_send(std::uint32_t receiver) {
  SETO_ASSIGN(auto pair, peer_group_.open_pair_send(receiver));
  return std::unique_ptr<PairSender>(new PumpedPairSender(std::move(pair), pump_));
}

Result<std::unique_ptr<PairReceiver>> PumpedPeerGroup::open_pair_receive(std::uint32_t sender) {
  SETO_ASSIGN(auto pair, peer_group_.open_pair_receive(sender));
  return std::unique_ptr<PairReceiver>(new PumpedPairReceiver(std::move(pair), pump_));
}

}  // namespace seto::support
