#include "src/core/connect/deferred_cleanup.h"

namespace seto {

bool Remains::past(std::uint32_t peer) const {
  return parts_.circle->fate_of(peer).reason != 0 || parts_.circle->completed_by(peer) >= parts_.issued;
}

bool Remains::over() {
  bool all_departed = true;
  for (std::uint32_t peer = 0; peer < parts_.connections.size(); ++peer) {
    const std::shared_ptr<Connection>& connection = parts_.connections[peer];
    if (connection == nullptr || connection->ended() || parts_.circle->departed(peer)) continue;
    if (!past(peer)) return false;
    all_departed = false;
  }
  parts_.transfers.reset();
  parts_.circle->depart();
  if (all_departed) parts_.pool->give_back_board(parts_.board.offset, parts_.board.size);
  return all_departed;
}

}  // namespace seto
