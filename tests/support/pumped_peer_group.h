#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "transports/transport.h"

namespace seto::support {

// Moves bytes of a transport, as Transport::progress() does.
using Pump = std::function<void()>;

// A peer group that pumps before each look, as the holder of a context's progress token does. The peer group outlives it.
class PumpedPeerGroup final : public PeerGroup {
 public:
  PumpedPeerGroup(PeerGroup& peer_group, Pump pump);
  ~PumpedPeerGroup() override;

  [[nodiscard]] PeerStatus& status() override { return *status_; }
  [[nodiscard]] std::uint32_t members() const override { return peer_group_.members(); }
  Result<std::unique_ptr<SendStream>> open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                const StreamGeometry& geometry) override;
  Result<std::unique_ptr<ReceiveStream>> open_receive(StreamAddress address, const StreamGeometry& geometry) override;
  Result<std::unique_ptr<PairSender>> open_pair_send(std::uint32_t receiver) override;
  Result<std::unique_ptr<PairReceiver>> open_pair_receive(std::uint32_t sender) override;
  void disregard(std::uint64_t operation) override { peer_group_.disregard(operation); }
  void complete(std::uint64_t operation) override { peer_group_.complete(operation); }
  void depart() override { peer_group_.depart(); }
  [[nodiscard]] Status failure() const override { return peer_group_.failure(); }
  [[nodiscard]] bool suspects() const override { return peer_group_.suspects(); }

 private:
  PeerGroup& peer_group_;
  const Pump pump_;
  std::unique_ptr<PeerStatus> status_;
};

}  // namespace seto::support
