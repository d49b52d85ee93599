#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/control/local/local_connector.h"
#include "transports/shm/lending_link.h"
#include "transports/shm/shm_connection.h"

namespace seto {

// Contexts of one process, in an order that all members share.
struct ProcessContexts {
  std::string process;  // LocalConnector::address()
  std::vector<ContextId> contexts;
};

// Another process of this host, after one handshake between contexts of both: one socket for all of them, whose end of file tells
// that the process has ended. Lives while a connection to the process does. Any thread.
class LocalProcess final {
 public:
  // Two processes that need a handshake, with the contexts that it connects. Neither list is empty.
  struct Pair {
    ProcessContexts own;  // its first context does the handshake
    ProcessContexts theirs;
    AttemptId attempt = 0;
  };
  // A handshake under way. A context with several starts all of them before it finishes the first.
  struct Handshake {
    std::string process;  // the other one
    LocalConnectRequest request;
    std::vector<ContextId> theirs;
    std::vector<std::shared_ptr<const ContextMemory>> own;
    Result<PrivateFd> called;
  };
  static Result<Handshake> start_handshake(const Pair& pair, Deadline until);
  // Returns the connections to `theirs`, in that order, for all own contexts to share. Blocks until the first context of `theirs`
  // does the same, at most until the deadline.
  static Result<ShmConnections> finish_handshake(Handshake handshake, Heartbeats& heartbeats);
  LocalProcess(const LocalProcess&) = delete;
  LocalProcess& operator=(const LocalProcess&) = delete;

  // Notifies the other process that one of the own contexts ends while this process continues.
  void leave(ContextId own);
  // How the two processes read each other's memory.
  [[nodiscard]] slots::LendingPartner& lending() { return lending_; }

 private:
  friend class ShmConnection;

  explicit LocalProcess(PrivateFd socket) : socket_(std::move(socket)) {}
  void receive_notices();
  void end(std::optional<ContextId> context);  // empty: all
  // Called by connections as they are made and destroyed.
  void add(ShmConnection* connection);
  void remove(const ShmConnection* connection);
  void wake_own_contexts() const;

  const std::uint32_t generation_ = fork_generation();
  const PrivateFd socket_;  // notices
  LendingLink lending_{socket_};
  std::vector<std::weak_ptr<const ContextMemory>> own_;  // not changed once the socket is watched
  std::mutex mutex_;
  std::vector<ShmConnection*> theirs_;
  Watch watch_;  // last: destroyed before what its handler uses
};

}  // namespace seto
