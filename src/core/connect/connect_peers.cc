#include "src/core/connect/connect_peers.h"

#include <cstdint>

namespace seto {

Attempt attempt_over(const AnnouncedRanks& announced, std::size_t transport) {
  Attempt attempt;
  attempt.id = announced.attempt;
  attempt.key = announced.key;
  attempt.ranks_per_core = announced.ranks_per_core;
  attempt.own = static_cast<std::uint32_t>(announced.rank);
  attempt.on_first_use = announced.on_first_use;
  attempt.relayed = announced.relays == Relays::yes;
  attempt.opening_ms = announced.opening_ms;
  for (std::size_t rank = 0; rank < announced.all.size(); ++rank) {
    AttemptMember member;
    member.number = static_cast<std::uint32_t>(rank);
    member.place = &announced.all[rank].place;
    if (!announced.endpoints.empty()) member.address = announced.endpoints[rank].transports[transport].address;
    member.held = announced.all[rank].offered;
    if (!announced.needs.empty()) member.need = announced.needs[rank];
    member.same_site = announced.same_site[rank];
    if (attempt.relayed) member.site = announced.site_names[announced.site_of[rank]];
    attempt.members.push_back(member);
  }
  return attempt;
}

Status PeerConnections::open(Deadline until) {
  connections_.resize(announced_.all.size());
  for (std::size_t transport = 0; transport < announced_.transports.size(); ++transport) SETO_TRY(open_over(transport, until));
  return {};
}

// A connection that both ends hold already is used again; otherwise both open a new one.
Status PeerConnections::open_over(std::size_t transport, Deadline until) {
  Attempt attempt = attempt_over(announced_, transport);
  for (std::size_t peer = 0; peer < connections_.size(); ++peer) {
    if (peer == announced_.rank || announced_.transport_to(peer) != transport) continue;
    AttemptMember& member = attempt.members[peer];
    connections_[peer] =
        announced_.known.shared_with({member.place->process, member.place->context, 0}, announced_.all[peer].offered);
    member.wanted = connections_[peer] == nullptr;
    member.proved = announced_.proved[peer];
  }
  SETO_TRY(announced_.transports[transport].endpoint->connect(attempt, until, connections_));
  for (std::size_t peer = 0; peer < connections_.size(); ++peer)
    if (connections_[peer] != nullptr && connections_[peer]->dead())
      return named(attempt.members[peer], failure(Code::remote_error, "%s", connections_[peer]->why_dead().c_str()));
  return {};
}

}  // namespace seto
