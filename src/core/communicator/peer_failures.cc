#include "src/core/communicator/peer_failures.h"

#include <new>
#include <vector>

#include "src/base/log.h"
#include "src/bootstrap/bootstrap.h"
#include "src/core/call/call_summary.h"
#include "src/core/call/mismatch.h"
#include "src/core/progress/call_deadline.h"

namespace seto {
namespace {

// How long a rank that knows of two different calls waits for the notes of the others. Ranks that begin a call together write
// their notes within a few turns of the scheduler.
constexpr std::uint64_t kNotesMs = 250;

unsigned long long number_of(const Note& note) { return static_cast<unsigned long long>(note.operation); }

// The call of the lowest rank, and the call of the lowest rank that differs from it.
std::string text_of_difference(Rank lowest, const Note& call, Rank differing, const Note& other) {
  const std::string usual = text_of(call);
  const std::string odd = text_of(other);
  if (usual == odd) return Mismatch{call.operation, lowest, differing}.of_plans(usual);
  return Mismatch{call.operation, differing, lowest}.of_calls(odd, usual);
}

// False: there was not enough.
template <class Work>
bool has_memory_for(const Work& work) noexcept {
  try {
    work();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace

void PeerFailures::fail(const Status& reason, Rank culprit) noexcept {
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    if (first_.ok()) {
      is_first = true;
      first_ = reason;  // shares the text
      culprit_ = culprit;
      is_untold_.store(true, std::memory_order_release);
    }
  }
  failed_.store(true, std::memory_order_release);
  static_cast<void>(tell_peers());
  if (!is_first) return;
  parts_.context.wake();
  static_cast<void>(has_memory_for([this] { parts_.observability.failed(); }));
}

// A member that cannot give its reason leaves without: the peers must not wait for it.
bool PeerFailures::tell_peers() noexcept {
  if (!is_untold_.exchange(false, std::memory_order_acq_rel)) return true;
  PeerStatus& status = members_.peer_group().status();
  const Status reason = first();
  static_cast<void>(has_memory_for([&] { status.explain(reason.text()); }));
  const Fate fate{static_cast<std::uint32_t>(reason.code()), static_cast<std::uint32_t>(culprit_)};
  if (has_memory_for([&] { status.leave(fate); })) return true;
  is_untold_.store(true, std::memory_order_release);
  return false;
}

Status PeerFailures::first() const {
  const std::lock_guard lock(mutex_);
  return first_;
}

// A rank that left without a failure has completed what it needed, so its last operations may still end well here.
bool PeerFailures::a_peer_failed(std::uint64_t departures) {
  departures_ = departures;
  for (Rank peer = 0; peer < members_.ranks(); ++peer) {
    const std::uint32_t reason = peer == members_.rank() ? 0 : members_.fate_of(peer).reason;
    if (reason == 0 || reason == static_cast<std::uint32_t>(Code::invalid_usage)) continue;
    fail(members_.loss_of(peer), members_.blamed_by(peer));
    return true;
  }
  return false;
}

// A peer that has completed the operation is not needed for it any more. A peer that has left reports its own reason.
Status PeerFailures::died(Rank peer, const Note& own) const {
  if (!members_.is_dead(peer) || members_.completed_by(peer) >= own.operation || members_.has_left(peer)) return {};
  return failure(Code::remote_error, "operation %llu (%s): rank %d (%s): %s", number_of(own), text_of(own).c_str(), peer,
                 members_.place_of(peer).c_str(), members_.connection_to(peer)->why_dead().c_str());
}

Status PeerFailures::left(Rank peer, const Note& own) const {
  const Fate fate = members_.fate_of(peer);
  if (peer == members_.rank() || fate.reason == 0 || members_.completed_by(peer) >= own.operation) return {};
  // Its reason becomes the reason of all ranks.
  if (const std::string reason = members_.explanation_of(peer); !reason.empty())
    return failure(Code::remote_error, "%s", reason.c_str());
  std::string why;
  if (fate.reason == static_cast<std::uint32_t>(Code::timeout))
    why = " at a deadline: " + missing_ranks(own);
  else if (const Rank blamed = members_.blamed_by(peer); blamed != peer)
    why = " because of rank " + std::to_string(blamed);
  return failure(Code::remote_error, "operation %llu (%s): rank %d has left the communicator%s", number_of(own),
                 text_of(own).c_str(), peer, why.c_str());
}

// Death and departure are read before the notes: a peer that left because of a note has read it, so this rank can read it too.
Status PeerFailures::look_around(const Note& own) {
  Rank culprit = members_.rank();
  Status reason;
  for (Rank peer = 0; peer < members_.ranks() && reason.ok(); ++peer) {
    culprit = peer;
    reason = died(peer, own);
  }
  for (Rank peer = 0; peer < members_.ranks() && reason.ok(); ++peer) {
    culprit = members_.blamed_by(peer);
    reason = left(peer, own);
  }
  if (reason.ok() && awaits_notes(own)) return {};
  SETO_TRY(check_notes_of_all(own));
  if (!reason.ok()) SETO_TRY(check_earlier_notes(own.operation));
  if (reason.ok()) {
    reason = members_.peer_group().failure();
    culprit = members_.rank();
    if (!reason.ok()) SETO_TRY(check_earlier_notes(own.operation));
  }
  if (!reason.ok()) {
    fail(reason, culprit);
    return first();
  }
  return {};
}

// Compares a peer's note with this rank's. If the peer rejected its call, the operation ends; if it makes another call, the
// communicator fails.
Status PeerFailures::check_note_of(Rank peer, const Note& own) {
  Note theirs;
  if (!members_.note_of(peer, own.operation, theirs)) return {};
  if (theirs.verdict != 0)
    return failure(Code::remote_error, "operation %llu: rank %d rejected its call (%s), so the call ends on every rank",
                   number_of(own), peer, reason_of(theirs).c_str());
  if (theirs.digest == own.digest) return {};
  fail_differing(own, peer, theirs);
  return first();
}

Status PeerFailures::check_notes_of_all(const Note& own) {
  for (Rank peer = 0; peer < members_.ranks(); ++peer)
    if (peer != members_.rank()) SETO_TRY(check_note_of(peer, own));
  return {};
}

// A call differs, but not all ranks have said theirs: with all notes each rank names the same two ranks.
bool PeerFailures::awaits_notes(const Note& own) {
  bool differs = false;
  bool all_known = true;
  for (Rank peer = 0; peer < members_.ranks(); ++peer) {
    Note theirs;
    if (peer == members_.rank()) continue;
    if (!members_.note_of(peer, own.operation, theirs)) {
      all_known = all_known && members_.completed_by(peer) >= own.operation;
      continue;
    }
    if (theirs.verdict != 0) return false;
    differs = differs || theirs.digest != own.digest;
  }
  if (!differs || all_known) return false;
  if (differing_operation_ != own.operation) notes_until_ = Deadline::after_ms(kNotesMs);
  differing_operation_ = own.operation;
  return !notes_until_.passed();
}

// The calls of this rank and of the peer differ. A rank that has left because of that has named two ranks already, with fewer
// notes perhaps, so all name those. Else it is the lowest rank and the lowest that differs from it, of those whose calls are
// known.
void PeerFailures::fail_differing(const Note& own, Rank peer, const Note& theirs) {
  for (Rank rank = 0; rank < members_.ranks(); ++rank) {
    const std::string named = rank == members_.rank() ? std::string() : members_.explanation_of(rank);
    if (const auto read = read_mismatch(named); read && read->mismatch.operation == own.operation)
      return fail({Code::remote_error, named}, members_.blamed_by(rank));
  }
  Rank lowest = members_.ranks();
  Note call;
  for (Rank rank = 0; rank < members_.ranks(); ++rank) {
    Note note = rank == peer ? theirs : own;
    const bool known = rank == peer || rank == members_.rank() || members_.note_of(rank, own.operation, note);
    if (!known || note.verdict != 0 || (lowest < rank && note.digest == call.digest)) continue;
    if (lowest < rank)
      return fail({Code::remote_error, text_of_difference(lowest, call, rank, note)}, rank == members_.rank() ? lowest : rank);
    lowest = rank;
    call = note;
  }
}

// A rank that only sends may have completed an operation before another rank began it with a different call.
Status PeerFailures::check_earlier_notes(std::uint64_t before) {
  for (std::uint64_t operation = before - 1; operation > 0; --operation) {
    Note own;
    if (!members_.note_of(members_.rank(), operation, own)) return {};
    for (Rank peer = 0; peer < members_.ranks(); ++peer) {
      Note theirs;
      const bool known = peer != members_.rank() && members_.note_of(peer, operation, theirs);
      if (known && own.verdict == 0 && theirs.verdict == 0) SETO_TRY(check_note_of(peer, own));
    }
  }
  return {};
}

Status PeerFailures::check_notes(const Note& own) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return check_notes_of_all(own);
}

std::string PeerFailures::missing_ranks(const Note& own) const {
  std::vector<Rank> missing;
  for (Rank peer = 0; peer < members_.ranks(); ++peer) {
    Note theirs;
    if (peer != members_.rank() && !members_.note_of(peer, own.operation, theirs) && members_.completed_by(peer) < own.operation)
      missing.push_back(peer);
  }
  return missing.empty() ? "all ranks came" : rank_list(missing) + " never came";
}

std::string PeerFailures::describe(const Note& own, const std::string& where) const {
  return missing_ranks(own) + "; rank " + std::to_string(members_.rank()) + " " + where;
}

// A difference is the reason also where the notes of all ranks were awaited until now.
Status PeerFailures::fail_overdue(const Note& own, const CallDeadline& limit, const std::string& where) {
  SETO_TRY(check_notes_of_all(own));
  fail(failure(Code::timeout, "operation %llu (%s) did not end within %s: %s", number_of(own), text_of(own).c_str(),
               limit.text().c_str(), describe(own, where).c_str()),
       members_.rank());
  return first();
}

void PeerFailures::warn_slow(const Note& own, const std::string& where, double seconds) const {
  SETO_LOG_AS(warn, (LogOrigin{members_.rank(), 0}), "operation %llu (%s) has not ended after %.3g s: %s", number_of(own),
              text_of(own).c_str(), seconds, describe(own, where).c_str());
}

void PeerFailures::check_queued_tasks() {
  if (const Status reason = parts_.queued.in_vain(); !reason.ok()) return fail(reason, members_.rank());
  const OperationOrder& order = parts_.order;
  const std::uint64_t next = order.begun() + 1;
  if (failed() || next > order.issued() || next != order.done() + 1) return;  // an operation is under way and looks around itself
  for (Rank peer = 0; peer < members_.ranks(); ++peer) {
    if (peer == members_.rank()) continue;
    const Status loss = members_.loss_of(peer);
    if (loss.ok() || members_.completed_by(peer) >= next) continue;
    const Rank culprit = members_.has_left(peer) ? members_.blamed_by(peer) : peer;
    if (members_.has_explained(peer)) return fail(loss, culprit);
    return fail(failure(loss.code(), "operation %llu cannot begin any more: %s", static_cast<unsigned long long>(next),
                        std::string(loss.text()).c_str()),
                culprit);
  }
}

// Death is read before the fate: a rank that leaves writes its fate before its process ends.
void PeerFailures::check_peers() {
  const OperationOrder& order = parts_.order;
  const std::uint64_t done = order.done();
  const bool only_transfers = order.issued() == done && parts_.queued.under_way() != 0;
  if (failed()) static_cast<void>(tell_peers());
  if (failed() || order.begun() != done || only_transfers) return;
  for (Rank peer = 0; peer < members_.ranks(); ++peer) {
    if (peer == members_.rank()) continue;
    const bool dead = members_.is_dead(peer);
    // Over a network the death is known before all data has been read, and no thread reads while no call is under way.
    if (dead && !members_.all_data_arrived_from(peer)) parts_.context.progress().pump_once();
    const std::uint32_t left = members_.fate_of(peer).reason;
    const bool lost = left != 0 ? left != static_cast<std::uint32_t>(Code::invalid_usage)
                                : dead && members_.all_data_arrived_from(peer) && members_.completed_by(peer) <= done;
    if (lost) return fail(members_.loss_of(peer), left != 0 ? members_.blamed_by(peer) : peer);
  }
}

}  // namespace seto
