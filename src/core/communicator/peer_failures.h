#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/core/communicator/members.h"
#include "src/core/communicator/operation_order.h"
#include "src/core/communicator/queued_tasks.h"
#include "src/core/connect/context.h"
#include "src/core/record/observability.h"

namespace seto {

class CallDeadline;

// Detects that an operation or the communicator cannot end well: a peer has died or left, a note disagrees, a deadline has
// passed. Keeps the first failure and tells the peers.
class PeerFailures final {
 public:
  // The parts of the communicator that this class uses. All outlive the object.
  struct Parts {
    const Members& members;
    const OperationOrder& order;
    QueuedTasks& queued;
    Context& context;
    Observability& observability;
  };
  explicit PeerFailures(const Parts& parts)
      : parts_(parts), members_(parts.members), status_(parts.members.peer_group().status()) {}
  PeerFailures(const PeerFailures&) = delete;
  PeerFailures& operator=(const PeerFailures&) = delete;

  // The communicator has failed. Only the first reason is kept and told to the peers. Any thread. Throws nothing: if the process
  // has no memory to tell the peers, tell_peers() does it later.
  void fail(const Status& reason, Rank culprit) noexcept;
  // False: the peers were not told of the failure, because there is no memory. Queries and calls after a failure try it again.
  bool tell_peers() noexcept;
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] Status first() const;

  // For a call that begins: true if the communicator has failed. Takes over the failure of a peer that has announced one, so that
  // a call which begins after that never succeeds. One load while no peer has left.
  [[nodiscard]] bool failed_anywhere() {
    if (failed()) {
      static_cast<void>(tell_peers());
      return true;
    }
    const std::uint64_t departures = status_.departures();
    return departures != departures_ && a_peer_failed(departures);
  }

  // For a task that has not moved for a while: returns the reason why its operation must end, if there is one, and fails the
  // communicator unless a peer has merely rejected its call.
  Status look_around(const Note& own);
  // For an operation in which this rank receives nothing, so that no header tells of another call. Of two ranks that disagree, at
  // least one sees the note of the other, because both write their own note before they read.
  Status check_notes(const Note& own);
  // Fails the communicator: the operation has passed its deadline. `where`: what this rank waits for.
  Status fail_overdue(const Note& own, const CallDeadline& limit, const std::string& where);
  void warn_slow(const Note& own, const std::string& where, double seconds) const;

  // While only queued tasks are left, which no stream has begun and which therefore do not look around: fails if one of them can
  // never end well.
  void check_queued_tasks();
  // While no call is under way. Any thread. Fails if a peer has failed or died. A rank that left without a failure, or a dead
  // process that had completed its operations, may be no loss; so sends and receives that are under way check for themselves.
  void check_peers();

 private:
  bool a_peer_failed(std::uint64_t departures);
  Status died(Rank peer, const Note& own) const;
  Status left(Rank peer, const Note& own) const;
  Status check_note_of(Rank peer, const Note& own);
  Status check_notes_of_all(const Note& own);
  bool awaits_notes(const Note& own);
  void fail_differing(const Note& own, Rank peer, const Note& theirs);
  Status check_earlier_notes(std::uint64_t before);
  [[nodiscard]] std::string missing_ranks(const Note& own) const;
  [[nodiscard]] std::string describe(const Note& own, const std::string& where) const;

  const Parts parts_;
  const Members& members_;
  const PeerStatus& status_;
  std::uint64_t departures_ = 0;  // token held: as last seen
  // Token held: the operation in which calls differ, and how long the notes of all ranks are awaited.
  std::uint64_t differing_operation_ = 0;
  Deadline notes_until_ = Deadline::never();
  std::atomic<bool> failed_{false};
  std::atomic<bool> is_untold_{false};  // the peers are still to be told; the thread that clears it does that
  mutable std::mutex mutex_;
  Status first_;
  Rank culprit_ = 0;  // of the first failure
};

}  // namespace seto
