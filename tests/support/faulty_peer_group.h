#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <unordered_map>

#include "transports/transport.h"

// A circle whose medium misbehaves, within its contract (delay, order) or beyond it (cut, garbage). All choices follow from the
// seed and the calls, so a failing seed fails again.
namespace seto::support {

enum class Way : std::uint8_t { stream, pair };

struct Sent {
  StreamAddress address;
  std::uint32_t receiver = 0;  // the first one of a multicast
  Mark mark = 0;               // of a pair: the message, and pieces sent before
  Way way = Way::stream;
};

struct Faults {
  std::uint64_t seed = 1;
  std::uint32_t most_delay = 0;  // empty answers before the real one: any number up to this
  std::uint32_t hold = 0;        // 0: never. Else about half of the streams are silent, others after each so many questions
  std::uint64_t cut_after = ~std::uint64_t{0};  // messages; whatever this member sends later never arrives
  // Called after each message that went out; may damage it.
  std::function<void(const Sent& sent, std::uint64_t random)> garbage = {};
};

class FaultyCircle final : public Circle {
 public:
  FaultyCircle(Circle& circle, Faults faults) : circle_(circle), faults_(std::move(faults)), random_(faults_.seed) {}

  [[nodiscard]] std::uint32_t members() const override { return circle_.members(); }
  Result<std::unique_ptr<SendStream>> open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                const StreamGeometry& geometry) override;
  Result<std::unique_ptr<ReceiveStream>> open_receive(StreamAddress address, const StreamGeometry& geometry) override;
  Result<std::unique_ptr<PairSender>> open_pair_send(std::uint32_t receiver) override;
  Result<std::unique_ptr<PairReceiver>> open_pair_receive(std::uint32_t sender) override;
  [[nodiscard]] Mapping direct(std::uint32_t member) const override { return circle_.direct(member); }
  void begin(const Note& note) override { circle_.begin(note); }
  void complete(std::uint64_t operation) override { circle_.complete(operation); }
  [[nodiscard]] std::uint64_t window() const override { return circle_.window(); }
  bool note_of(std::uint32_t member, std::uint64_t operation, Note& note) const override {
    return circle_.note_of(member, operation, note);
  }
  [[nodiscard]] std::uint64_t completed_by(std::uint32_t member) const override { return circle_.completed_by(member); }
  void leave(Fate fate) override { circle_.leave(fate); }
  [[nodiscard]] Fate fate_of(std::uint32_t member) const override { return circle_.fate_of(member); }
  void depart() override { circle_.depart(); }
  [[nodiscard]] bool departed(std::uint32_t member) const override { return circle_.departed(member); }
  [[nodiscard]] Status failure() const override { return circle_.failure(); }

  [[nodiscard]] std::uint64_t withheld() const { return withheld_; }  // answers: what a test looks at to know that it tested
  [[nodiscard]] std::uint64_t sent() const { return sent_; }

 private:
  friend class FaultySender;
  friend class FaultyReceiver;
  friend class FaultyPairSender;
  friend class FaultyPairReceiver;

  // What one stream has answered: an answer given stays given, as the contract asks.
  struct Gate {
    std::uint64_t id = 0;
    std::unordered_map<Mark, std::uint32_t> empty_answers;  // left, by mark
    Mark granted[2] = {};                                   // of each of two operations under way: the last answer
  };

  bool opens(Gate& gate, Mark mark);
  void went_out(const Sent& sent);
  [[nodiscard]] bool cut() const { return sent_ >= faults_.cut_after; }

  Circle& circle_;
  Faults faults_;
  std::mt19937_64 random_;
  std::uint64_t streams_ = 0;
  std::uint64_t questions_ = 0;
  std::uint64_t silence_ = 0;  // chooses the silent streams
  std::uint64_t withheld_ = 0;
  std::uint64_t sent_ = 0;
};

}  // namespace seto::support
