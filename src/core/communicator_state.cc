#include "src/core/communicator_state.h"

#include "src/core/communicator.h"

namespace seto {

PeerState Communicator::state_of(Rank rank) const {
  const auto member = static_cast<std::uint32_t>(rank);
  PeerState peer;
  const std::shared_ptr<Connection>& connection = connections_[member];
  const Fate fate = circle_->fate_of(member);
  if (rank == rank_)
    peer.life = PeerState::Life::own;
  else if (connection->dead())
    peer.life = PeerState::Life::dead;
  else if (fate.reason != 0)
    peer.life = PeerState::Life::left;
  if (fate.reason != 0 && fate.culprit != member && fate.culprit < static_cast<std::uint32_t>(ranks_))
    peer.blames = static_cast<Rank>(fate.culprit);
  peer.done = circle_->completed_by(member);
  // Its notes are kept by number, and it cannot have begun more than a window beyond what it has completed.
  for (std::uint64_t operation = peer.done + circle_->window(); operation > 0 && operation >= peer.done && !peer.note;
       --operation) {
    Note note;
    if (circle_->note_of(member, operation, note)) peer.note = note;
  }
  return peer;
}

CommunicatorState Communicator::state() const {
  CommunicatorState state;
  state.done = done_.load(std::memory_order_acquire);
  state.begun = begun();
  state.issued = issued();
  state.under_way = under_way_.load(std::memory_order_relaxed);
  state.leased_bytes = context_->pool().leased();
  state.used_bytes = context_->pool().used();
  state.failure = first_failure();
  for (Rank rank = 0; rank < ranks_; ++rank) state.peers.push_back(state_of(rank));
  return state;
}

}  // namespace seto
