#include "src/core/connect/join_groups.h"

#include <algorithm>
#include <utility>

#include "src/core/connect/mixed_streams.h"

namespace seto {
namespace {

const std::string& seat_of(const AnnouncedRanks& announced, std::size_t transport, std::uint32_t rank) {
  return announced.endpoints.empty() ? announced.all[rank].seat : announced.endpoints[rank].transports[transport].seat;
}

Result<MixedStreams::Part> join(AnnouncedRanks& announced, const Connections& connections, std::size_t transport) {
  MixedStreams::Part part;
  part.ranks = announced.members_of(transport);
  GroupMembers group;
  group.attempt = announced.attempt;
  group.ranks_per_core = announced.ranks_per_core;
  for (const std::uint32_t rank : part.ranks) {
    if (rank == announced.rank) group.own = static_cast<std::uint32_t>(group.members.size());
    const bool connected = rank != announced.rank && announced.transport_to(rank) == transport;
    group.members.push_back({connected ? connections[rank] : nullptr, seat_of(announced, transport, rank), rank});
  }
  SETO_ASSIGN(part.peer_group, announced.transports[transport].seat->join(std::move(group)));
  return part;
}

}  // namespace

Result<std::shared_ptr<PeerGroup>> join_groups(AnnouncedRanks& announced, const Connections& connections) {
  std::vector<MixedStreams::Part> parts;
  std::vector<std::uint32_t> part_of(announced.all.size(), 0);
  for (std::size_t transport = 0; transport < announced.transports.size(); ++transport) {
    bool used = announced.all.size() == 1;
    for (std::uint32_t rank = 0; rank < part_of.size(); ++rank) {
      if (rank == announced.rank || announced.transport_to(rank) != transport) continue;
      part_of[rank] = static_cast<std::uint32_t>(parts.size());
      used = true;
    }
    if (!used) continue;
    SETO_ASSIGN(MixedStreams::Part part, join(announced, connections, transport));
    parts.push_back(std::move(part));
  }
  if (parts.size() == 1) return std::move(parts.front().peer_group);
  return std::shared_ptr<PeerGroup>(std::make_shared<MixedStreams>(std::move(parts), part_of));
}

}  // namespace seto
