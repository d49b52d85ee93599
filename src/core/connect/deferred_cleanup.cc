#include "src/core/connect/deferred_cleanup.h"

#include <utility>

namespace seto {

bool DeferredCleanup::is_past(std::uint32_t peer) const {
  const PeerStatus& status = parts_.peer_group->status();
  return status.fate_of(peer).reason != 0 || status.completed_by(peer) >= parts_.issued;
}

bool DeferredCleanup::done() {
  PeerGroup& peer_group = *parts_.peer_group;
  bool all_departed = true;
  for (std::uint32_t peer = 0; peer < parts_.connections.size(); ++peer) {
    const std::shared_ptr<Connection>& connection = parts_.connections[peer];
    if (connection == nullptr || connection->ended() || peer_group.status().departed(peer)) continue;
    if (!is_past(peer)) return false;
    all_departed = false;
  }
  parts_.streams.reset();
  peer_group.depart();
  return all_departed;
}

void leave_ranks(Context& context, ConnectedRanks ranks, LastOperations last) {
  context.transports().communicator_ended(last.failed);
  PeerGroup& peer_group = *ranks.peer_group;
  peer_group.status().leave({static_cast<std::uint32_t>(Code::invalid_usage), static_cast<std::uint32_t>(ranks.rank)});
  peer_group.depart();
  context.clean_up_later(std::make_unique<DeferredCleanup>(
      DeferredCleanup::Parts{std::move(ranks.connections), std::move(ranks.peer_group), std::move(last.streams), last.issued}));
}

}  // namespace seto
