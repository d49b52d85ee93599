#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/control/local/local_connector.h"
#include "src/core/connect/connection_cache.h"
#include "src/core/connection.h"

namespace seto {

// Contexts of one process, in an order that all who speak of them share.
struct Household {
  std::string process;  // MeetingPoint::address()
  std::vector<ContextId> contexts;
};

// Another process of this machine, as contexts of both met it in one making: one socket for all of them, which tells when it
// ends. Lives while a connection does. Any thread.
class Neighbour final {
 public:
  struct Introduced {
    Household own;     // of this process; its first context makes the call
    Household theirs;  // not empty either
    AttemptId attempt = 0;
  };
  // Under way to the other process. Who has several approaches all of them before it meets the first.
  struct Approach {
    std::string process;  // theirs
    Appointment appointment;
    std::vector<ContextId> theirs;
    std::vector<std::shared_ptr<SharedSegment>> own;
    Result<PrivateFd> called;
  };
  static Result<Approach> approach(const Introduced& introduced, Deadline until);
  // The connections to `theirs`, in their order, for all of `own` to share. Blocks until the first of them does the same, at most
  // until the deadline.
  static Result<Connections> meet(Approach approach, Heartbeats& heartbeats);
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

  // One of the own contexts ends, while its process goes on.
  void leave(ContextId own);

 private:
  friend class Connection;

  explicit Neighbour(PrivateFd socket) : socket_(std::move(socket)) {}
  void hear();
  // Connections come and go.
  void remember(Connection* connection);
  void forget(const Connection* connection);
  void wake_own() const;

  const std::uint32_t generation_ = fork_generation();
  const PrivateFd socket_;                         // the other end's hang-up; its datagrams are contexts that have ended
  std::vector<std::weak_ptr<SharedSegment>> own_;  // fixed before anybody listens
  std::mutex mutex_;
  std::vector<Connection*> theirs_;
  Watch watch_;  // last: gone before what its handler uses
};

}  // namespace seto
