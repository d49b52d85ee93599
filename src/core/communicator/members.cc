#include "src/core/communicator/members.h"

#include <algorithm>

namespace seto {

int Members::others_of_process() const {
  return static_cast<int>(std::count_if(ranks_.connections.begin(), ranks_.connections.end(), [](const auto& connection) {
    return connection != nullptr && connection->reach() == Reach::process;
  }));
}

int Members::others_over_network() const {
  return static_cast<int>(std::count_if(ranks_.connections.begin(), ranks_.connections.end(), [](const auto& connection) {
    return connection != nullptr && connection->reach() == Reach::network;
  }));
}

bool Members::all_have_completed(std::uint64_t operation) const {
  for (Rank peer = 0; peer < ranks(); ++peer)
    if (peer != rank() && completed_by(peer) < operation && !has_left(peer) && !is_dead(peer)) return false;
  return true;
}

Rank Members::blamed_by(Rank peer) const {
  const Fate fate = fate_of(peer);
  return fate.culprit < static_cast<std::uint32_t>(ranks()) ? static_cast<Rank>(fate.culprit) : peer;
}

Status Members::loss_of(Rank peer) const {
  if (has_left(peer)) {
    if (const std::string reason = explanation_of(peer); !reason.empty())
      return failure(Code::remote_error, "%s", reason.c_str());
    const Rank blamed = blamed_by(peer);
    return failure(Code::remote_error, "rank %d has left the communicator%s", peer,
                   blamed == peer ? "" : (" because of rank " + std::to_string(blamed)).c_str());
  }
  if (is_dead(peer))
    return failure(Code::remote_error, "rank %d (%s): %s", peer, place_of(peer).c_str(), connection_to(peer)->why_dead().c_str());
  return {};
}

bool Members::data_may_arrive_from(Rank peer) const {
  const std::uint32_t reason = fate_of(peer).reason;
  return (reason == 0 || reason == static_cast<std::uint32_t>(Code::invalid_usage)) && !all_data_arrived_from(peer);
}

}  // namespace seto
