#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "transports/transport.h"

namespace seto {

// One peer group made of several, one for each transport that the ranks of a communicator use. Its members are ranks. Only this
// class decides which of the groups reaches a rank, so plans and engines see one peer group.
class MixedStreams final : public PeerGroup, private PeerStatus {
 public:
  struct Part {
    std::shared_ptr<PeerGroup> peer_group;
    std::vector<std::uint32_t> ranks;  // its members, ascending
  };
  // `part_of`: the part that reaches a rank, by rank. Several parts may have a rank as a member.
  MixedStreams(std::vector<Part> parts, const std::vector<std::uint32_t>& part_of);

  [[nodiscard]] std::uint32_t members() const override { return static_cast<std::uint32_t>(routes_.size()); }
  [[nodiscard]] PeerStatus& status() override { return *this; }
  Result<std::unique_ptr<SendStream>> open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                const StreamGeometry& geometry) override;
  Result<std::unique_ptr<ReceiveStream>> open_receive(StreamAddress address, const StreamGeometry& geometry) override;
  Result<std::unique_ptr<PairSender>> open_pair_send(std::uint32_t receiver) override;
  Result<std::unique_ptr<PairReceiver>> open_pair_receive(std::uint32_t sender) override;
  void disregard(std::uint64_t operation) override;
  void complete(std::uint64_t operation) override;
  void depart() override;
  [[nodiscard]] Status failure() const override;
  [[nodiscard]] bool suspects() const override;

 private:
  // How a rank is reached: the peer group, and its number as a member of that.
  struct Route {
    PeerGroup* peer_group = nullptr;
    std::uint32_t member = 0;
  };

  // PeerStatus: each rank's status is that of its peer group.
  void begin(const Note& note) override;
  bool note_of(std::uint32_t rank, std::uint64_t operation, Note& note) const override;
  [[nodiscard]] std::uint64_t completed_by(std::uint32_t rank) const override;
  void leave(Fate fate) override;
  [[nodiscard]] Fate fate_of(std::uint32_t rank) const override;
  [[nodiscard]] std::uint64_t departures() const override;
  void explain(std::string_view why) override;
  [[nodiscard]] std::string explanation_of(std::uint32_t rank) const override;
  [[nodiscard]] bool departed(std::uint32_t rank) const override;
  [[nodiscard]] bool silent(std::uint32_t rank) const override;

  [[nodiscard]] PeerStatus& status_of(std::uint32_t rank) const { return routes_[rank].peer_group->status(); }
  // Null: there is no such rank.
  [[nodiscard]] const Route* route_to(std::uint32_t rank) const { return rank < members() ? &routes_[rank] : nullptr; }

  std::vector<Part> parts_;
  std::vector<Route> routes_;  // by rank
};

}  // namespace seto
