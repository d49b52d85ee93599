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

// The longest interval at which a waiting answerer asks whether the connection will come.
inline constexpr std::uint64_t kProbeMs = 200;

// The result of a connection between two contexts of one machine.
struct LocalConnection {
  PrivateFd socket;             // packet socket, non-blocking; its hang-up reports the peer's death
  std::vector<Fd> descriptors;  // the peer's, in its order
};

struct LocalConnectRequest {
  std::string remote_address;  // the peer's address()
  ContextId mine = 0;
  ContextId theirs = 0;
  std::vector<int> descriptors;  // descriptors for the peer; they stay the caller's
  Deadline until;
  AttemptId attempt = 0;     // the same on both sides
  std::size_t expected = 1;  // the number of descriptors that the peer sends
};

// Connects contexts of this process with contexts of this and other processes of the machine.
class LocalConnector final {
 public:
  static Result<LocalConnector*> of_process();
  // `control` outlives the result.
  static Result<std::unique_ptr<LocalConnector>> create(ControlThread& control);
  LocalConnector(const LocalConnector&) = delete;
  LocalConnector& operator=(const LocalConnector&) = delete;

  // To be gathered by all ranks over a bootstrap that only members can read: it contains the token of this process.
  [[nodiscard]] const std::string& address() const { return address_; }

  // Both sides call it, each with the other's address and the contexts swapped; blocks until the other side does. Any thread,
  // several pairs at once. A thread with several peers must take the pairs in an order that all ranks share (ascending ranks, for
  // example), or ranks may deadlock. Failures begin "its process ..."; the calling code prepends the rank.
  // Code::aborted: the other side has declined the attempt, and the text is its reason.
  [[nodiscard]] Result<LocalConnection> connect(const LocalConnectRequest& request) {
    return finish_connect(request, begin_connect(request));
  }

  // The same in two steps, for a thread with several peers: it begins all connections before it finishes the first, so that no
  // peer waits for another one. begin_connect() returns an invalid socket if the other side is the caller.
  [[nodiscard]] Result<PrivateFd> begin_connect(const LocalConnectRequest& request);
  [[nodiscard]] Result<LocalConnection> finish_connect(const LocalConnectRequest& request, Result<PrivateFd> called);

  // This context makes no more connections in this attempt: every peer that waits for it, now or later, gets the reason as
  // Code::aborted within kProbeMs. Needs no descriptor. Any thread.
  void decline(AttemptId attempt, ContextId mine, const Status& reason);

 private:
  LocalConnector() = default;
  [[nodiscard]] Result<LocalConnection> finish_as_caller(const LocalConnectRequest& request, const ProcessAddress& remote,
                                                         PrivateFd socket);
  [[nodiscard]] Result<LocalConnection> finish_as_answerer(const LocalConnectRequest& request, const ProcessAddress& remote);
  [[nodiscard]] Result<PrivateFd> await_caller(const CallKey& key, const ProcessAddress& remote, Deadline until);
  [[nodiscard]] Status probe(const CallKey& key, const ProcessAddress& remote) const;

  std::uint32_t generation_ = fork_generation();
  ProcessAddress self_;
  std::string address_;
  std::unique_ptr<LocalListener> listener_;
};

}  // namespace seto
