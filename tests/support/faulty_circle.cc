#include "tests/support/faulty_circle.h"

#include "tests/support/flows.h"

namespace seto::support {

class FaultySender final : public SendStream {
 public:
  FaultySender(FaultyCircle& circle, std::unique_ptr<SendStream> stream, Sent sent)
      : circle_(circle), stream_(std::move(stream)), sent_(sent), gate_{++circle.streams_, {}, {}} {}

  std::byte* acquire(Mark mark) override { return circle_.opens(gate_, mark) ? stream_->acquire(mark) : nullptr; }
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

 private:
  FaultyCircle& circle_;
  std::unique_ptr<ReceiveStream> stream_;
  FaultyCircle::Gate gate_;
};

Result<std::unique_ptr<SendStream>> FaultyCircle::open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                            const StreamGeometry& geometry) {
  SETO_ASSIGN(auto stream, circle_.open_send(address, receivers, geometry));
  return std::unique_ptr<SendStream>(new FaultySender(*this, std::move(stream), {address, receivers.front(), 0}));
}

Result<std::unique_ptr<ReceiveStream>> FaultyCircle::open_receive(StreamAddress address, const StreamGeometry& geometry) {
  SETO_ASSIGN(auto stream, circle_.open_receive(address, geometry));
  return std::unique_ptr<ReceiveStream>(new FaultyReceiver(*this, std::move(stream)));
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
