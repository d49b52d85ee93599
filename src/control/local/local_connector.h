#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/control/control_thread.h"
#include "src/control/handshake.h"
#include "src/control/local/local_listener.h"

namespace seto {

// How often at least one that waits for a call asks whether it will come.
inline constexpr std::uint64_t kProbeMs = 200;

// What two contexts of one machine have of each other after they met.
struct Meeting {
  PrivateFd socket;       // packets, non-blocking: its hang-up tells the peer's death
  std::vector<Fd> gifts;  // the peer's, in its order
};

struct Appointment {
  std::string remote_address;  // what the peer's address() said
  ContextId mine = 0;
  ContextId theirs = 0;
  std::vector<int> gifts;  // descriptors for the peer; they stay the caller's
  Deadline until;
  AttemptId attempt = 0;     // both say the same
  std::size_t expected = 1;  // gifts of the peer
};

// Where contexts of this process meet contexts of this and other processes of the machine.
class MeetingPoint final {
 public:
  static Result<MeetingPoint*> of_process();
  // `control` outlives the result.
  static Result<std::unique_ptr<MeetingPoint>> create(ControlThread& control);
  MeetingPoint(const MeetingPoint&) = delete;
  MeetingPoint& operator=(const MeetingPoint&) = delete;

  // To be gathered by all ranks over a bootstrap that only members hear: it carries the token of this process.
  [[nodiscard]] const std::string& address() const { return address_; }

  // Both sides call it, each with the other's address and the contexts swapped; blocks until the other did. Any thread, several
  // pairs at once. A thread with several peers must take the pairs in an order that all ranks share (ascending ranks will do),
  // or ranks wait for each other in a circle. Failures say "its process ..."; the caller prepends which rank that is.
  // Code::aborted: the other side has declined, and the text is its reason.
  [[nodiscard]] Result<Meeting> meet(const Appointment& appointment) { return meet(appointment, call(appointment)); }

  // The same in two steps, for a thread with several peers: it calls all before it meets the first, and nobody waits for
  // another's turn. No socket: it is the other side that calls.
  [[nodiscard]] Result<PrivateFd> call(const Appointment& appointment);
  [[nodiscard]] Result<Meeting> meet(const Appointment& appointment, Result<PrivateFd> called);

  // This context meets nobody any more in this attempt: whoever waits for it, or will, gets the reason as Code::aborted within
  // kProbeMs. Needs no descriptor. Any thread.
  void decline(AttemptId attempt, ContextId mine, const Status& reason);

 private:
  MeetingPoint() = default;
  [[nodiscard]] Result<Meeting> be_answered(const Appointment& appointment, const ProcessAddress& remote, PrivateFd socket);
  [[nodiscard]] Result<Meeting> answer(const Appointment& appointment, const ProcessAddress& remote);
  [[nodiscard]] Result<PrivateFd> await_caller(const CallKey& key, const ProcessAddress& remote, Deadline until);
  [[nodiscard]] Status ask(const CallKey& key, const ProcessAddress& remote) const;

  std::uint32_t generation_ = fork_generation();
  ProcessAddress self_;
  std::string address_;
  std::unique_ptr<Reception> reception_;
};

}  // namespace seto
