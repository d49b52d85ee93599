// What a communicator makes of ranks that have died or left: whose fault it is, in which words, and when it is noticed.

#include "src/core/communicator/communicator.h"
#include "src/core/call/call_summary.h"

namespace seto {

// A peer that has completed the operation owes nothing here, whatever became of it; one that said why it left did not die of it.
Status Communicator::died(Rank peer, const Note& own) const {
  const auto member = static_cast<std::uint32_t>(peer);
  if (peer == rank_ || !connections_[member]->dead()) return {};
  if (circle_->completed_by(member) >= own.operation || circle_->fate_of(member).reason != 0) return {};
  return failure(Code::remote_error, "operation %llu (%s): rank %d (%s): %s", static_cast<unsigned long long>(own.operation),
                 text_of(own).c_str(), peer, place_of(peer).c_str(), connections_[member]->why_dead().c_str());
}

Status Communicator::left(Rank peer, const Note& own) const {
  const auto member = static_cast<std::uint32_t>(peer);
  const Fate fate = circle_->fate_of(member);
  if (peer == rank_ || fate.reason == 0 || circle_->completed_by(member) >= own.operation) return {};
  // Its reason is everybody's.
  if (const std::string reason = circle_->explanation_of(member); !reason.empty())
    return failure(Code::remote_error, "%s", reason.c_str());
  std::string why;
  if (fate.reason == static_cast<std::uint32_t>(Code::timeout))
    why = " at a deadline: " + absentees(own);
  else if (fate.culprit != member)
    why = " because of rank " + std::to_string(fate.culprit);
  return failure(Code::remote_error, "operation %llu (%s): rank %d has left the communicator%s",
                 static_cast<unsigned long long>(own.operation), text_of(own).c_str(), peer, why.c_str());
}

// Whom a rank that left blames, so that all blame the same one however the news travelled.
Rank Communicator::blamed_by(Rank peer) const {
  const Fate fate = circle_->fate_of(static_cast<std::uint32_t>(peer));
  return fate.culprit < static_cast<std::uint32_t>(ranks_) ? static_cast<Rank>(fate.culprit) : peer;
}

Status Communicator::why_gone(Rank peer) const {
  const auto member = static_cast<std::uint32_t>(peer);
  if (const Fate fate = circle_->fate_of(member); fate.reason != 0) {
    if (const std::string reason = circle_->explanation_of(member); !reason.empty())
      return failure(Code::remote_error, "%s", reason.c_str());
    return failure(Code::remote_error, "rank %d has left the communicator%s", peer,
                   fate.culprit == member ? "" : (" because of rank " + std::to_string(fate.culprit)).c_str());
  }
  if (connections_[static_cast<std::size_t>(peer)]->dead())
    return failure(Code::remote_error, "rank %d (%s): %s", peer, place_of(peer).c_str(),
                   connections_[static_cast<std::size_t>(peer)]->why_dead().c_str());
  return {};
}

// Over a network words travel faster than data. Who failed, or gave up, has taken back what it sent.
bool Communicator::may_still_bring(Rank peer) const {
  const auto member = static_cast<std::uint32_t>(peer);
  const std::uint32_t reason = circle_->fate_of(member).reason;
  return (reason == 0 || reason == static_cast<std::uint32_t>(Code::invalid_usage)) && !circle_->silent(member);
}

void Communicator::miss_the_gone() {
  if (const Status reason = waiting_->in_vain(); !reason.ok()) return fail(reason, rank_);
  const std::uint64_t next = begun() + 1;
  if (failed() || next > issued() || next != done_.load(std::memory_order_acquire) + 1) return;  // others look, or will
  for (Rank peer = 0; peer < ranks_; ++peer) {
    if (peer == rank_) continue;
    const auto member = static_cast<std::uint32_t>(peer);
    const Status gone = why_gone(peer);
    if (gone.ok() || circle_->completed_by(member) >= next) continue;
    const Rank culprit = circle_->fate_of(member).reason != 0 ? blamed_by(peer) : peer;
    if (said_why(peer)) return fail(gone, culprit);
    return fail(failure(gone.code(), "operation %llu cannot begin any more: %s", static_cast<unsigned long long>(next),
                        std::string(gone.text()).c_str()),
                culprit);
  }
}

// Who left in peace may have done all that was to be done; what a dead process had ended before may be all that this rank still
// wants of it. Sends and receives that are under way look for themselves: they may want nothing of who is lost. Death is asked
// before the fate: who leaves says so before its process ends.
void Communicator::miss_the_lost() {
  const std::uint64_t done = done_.load(std::memory_order_acquire);
  const bool only_transfers = issued() == done && under_way_.load(std::memory_order_acquire) != 0;
  if (failed() || begun() != done || only_transfers) return;
  for (Rank peer = 0; peer < ranks_; ++peer) {
    if (peer == rank_) continue;
    const auto member = static_cast<std::uint32_t>(peer);
    const bool dead = connections_[member]->dead();
    // Over a network a death is known before all is read that was sent, and nobody reads while no call does.
    if (dead && !circle_->silent(member)) context_->progress().pump_once();
    const std::uint32_t left = circle_->fate_of(member).reason;
    const bool lost = left != 0 ? left != static_cast<std::uint32_t>(Code::invalid_usage)
                                : dead && circle_->silent(member) && circle_->completed_by(member) <= done;
    if (lost) return fail(why_gone(peer), left != 0 ? blamed_by(peer) : peer);
  }
}

}  // namespace seto
