#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "transports/rdma/verbs/manager.h"

namespace seto::rdma {

// The path of one queue pair from the connection manager: one end listens, the other one calls it, and both connect their queue
// pairs. Who may call was agreed over the control plane: a caller that has not the token and the queue pair of the peer is
// refused. Nothing waits, and there is no deadline here: the owner calls advance() and ends what takes too long.
class ManagedPath final {
 public:
  struct Setup {
    ConnectionManager* manager = nullptr;
    ManagerAddress own;
    std::string device;  // whose address that is
    std::uint8_t port = 0;
    std::string peer;          // as the user knows it
    ManagerGreeting greeting;  // of this end; the token is the same at both ends
    std::uint32_t peer_queue_pair = 0;
    std::uint8_t traffic_class = 0;
    int timeout_ms = 0;                                      // of a step of the caller
    std::function<Status(const QueuePairPath&)> connect;     // the own queue pair
    std::function<bool(int descriptor, bool begins)> watch;  // advance() is called when it is readable; may be empty
  };
  // service(): for the peer.
  static Result<std::unique_ptr<ManagedPath>> listen(Setup setup);
  static Result<std::unique_ptr<ManagedPath>> call(Setup setup, const ManagerAddress& peer);
  ManagedPath(const ManagedPath&) = delete;
  ManagedPath& operator=(const ManagedPath&) = delete;
  ~ManagedPath();

  // Goes on as far as possible. A failure: there will be no path.
  Status advance();
  // The own queue pair is connected; at the end that called, the one of the peer as well.
  [[nodiscard]] bool connected() const { return connected_; }
  [[nodiscard]] const Gid& own_gid() const { return setup_.own.gid; }
  [[nodiscard]] std::uint16_t service() const { return service_; }

 private:
  explicit ManagedPath(Setup setup) : setup_(std::move(setup)) {}
  Status open();
  Status take(const ManagerEvent& event);
  Status take_caller(const ManagerEvent& event);
  Status take_answer(const ManagerEvent& event);
  Status check_port(const ManagerEvent& event) const;
  Status connect();

  const Setup setup_;
  std::unique_ptr<ManagedConnection> connection_;
  bool watched_ = false;
  bool listens_ = false;
  bool connected_ = false;
  std::uint16_t service_ = 0;
};

}  // namespace seto::rdma
