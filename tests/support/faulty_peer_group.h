#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <unordered_map>

#include "transports/transport.h"

// A peer group whose medium misbehaves, within its contract (delay, order) or beyond it (cut connection, malformed data). All
// choices follow from the seed and the calls, so a failing seed fails again.
namespace seto::support {

enum class Way : std::uint8_t { stream, pair };

struct Sent {
  StreamAddress address;
  std::uint32_t receiver = 0;  // the first one of a multicast
  Mark mark = 0;               // for a pair: the message, and the pieces sent before
  Way way = Way::stream;
};

struct Faults {
  std::uint64_t seed = 1;
  std::uint32_t most_delay = 0;  // limit of the empty answers before the real one
  std::uint32_t hold = 0;        // 0: never; else about half of the streams give no answer, and others stop after this many polls
  std::uint64_t cut_after = ~std::uint64_t{0};  // number of messages; later ones of this member never arrive
  // Called after each message that was sent; it may damage the message.
  std::function<void(const Sent& sent, std::uint64_t random)> garbage = {};
};

class FaultyPeerGroup final : public PeerGroup {
 public:
  FaultyPeerGroup(PeerGroup& peer_group, Faults faults)
      : peer_group_(peer_group), faults_(std::move(faults)), random_(faults_.seed) {}

  [[nodiscard]] std::uint32_t members() const override { return peer_group_.members(); }
  Result<std::unique_ptr<SendStream>> open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                const StreamGeometry& geometry) override;
  Result<std::unique_ptr<ReceiveStream>> open_receive(StreamAddress address, const StreamGeometry& geometry) override;
  Result<std::unique_ptr<PairSender>> open_pair_send(std::uint32_t receiver) override;
  Result<std::unique_ptr<PairReceiver>> open_pair_receive(std::uint32_t sender) override;
  [[nodiscard]] PeerStatus& status() override { return peer_group_.status(); }
  void complete(std::uint64_t operation) override { peer_group_.complete(operation); }
  void depart() override { peer_group_.depart(); }
  [[nodiscard]] Status failure() const override { return peer_group_.failure(); }

  [[nodiscard]] std::uint64_t withheld() const {
    return withheld_;
  }  // withheld answers, which a test checks to be sure that it tested delays
  [[nodiscard]] std::uint64_t sent() const { return sent_; }

 private:
  friend class FaultySender;
  friend class FaultyReceiver;
  friend class FaultyPairSender;
  friend class FaultyPairReceiver;

  // The answers of one stream. An answer stays the same once given, as the contract requires.
  struct Gate {
    std::uint64_t id = 0;
    std::unordered_map<Mark, std::uint32_t> empty_answers;  // empty answers left, by mark
    Mark granted[2] = {};                                   // the last answer for each of two operations under way
  };

  bool opens(Gate& gate, Mark mark);
  void went_out(const Sent& sent);
  [[nodiscard]] bool cut() const { return sent_ >= faults_.cut_after; }

  PeerGroup& peer_group_;
  Faults faults_;
  std::mt19937_64 random_;
  std::uint64_t streams_ = 0;
  std::uint64_t questions_ = 0;
  std::uint64_t silence_ = 0;  // chooses the silent streams
  std::uint64_t withheld_ = 0;
  std::uint64_t sent_ = 0;
};

}  // namespace seto::support
