#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "src/base/result.h"
#include "src/net/token.h"
#include "transports/rdma/verbs/requests.h"

// The connection manager, as interfaces: librdmacm.h implements them, tests/support/fake_manager.h in memory. It finds the path
// between two ports as the administrator of the network has set it up, and passes the numbers of both queue pairs on. The queue
// pair itself is the caller's. No call waits for the network: events tell how it went on. A connection is used by one thread at a
// time, the manager by any.
namespace seto::rdma {

// A port, as the manager finds it.
struct ManagerAddress {
  Gid gid;                      // of RoCE: the IP address of the interface
  bool infiniband = false;      // the GID is no IP address
  std::uint32_t interface = 0;  // own one, of a link-local IP address
  std::uint16_t pkey = 0;       // of InfiniBand
  std::uint16_t service = 0;    // of a listener; 0: any that is free
};

// An end tells the other one this about its half.
struct ManagerGreeting {
  std::uint32_t queue_pair = 0;
  Token token{};  // shows that it comes from the peer
};

struct ManagerEvent {
  enum class Kind : std::uint8_t { address_resolved, route_resolved, called, answered, failed, other };
  Kind kind = Kind::other;
  std::string why;  // failed: in words
  // address_resolved, called: the device and port that the manager uses.
  std::string device;
  std::uint8_t port = 0;
  ManagerGreeting greeting;  // called, answered
};

// One end of a connection that is being made. Its end forgets the connection, and leaves the queue pair as it is.
class ManagedConnection {
 public:
  virtual ~ManagedConnection() = default;
  // Readable when next_event() has one.
  [[nodiscard]] virtual int descriptor() const = 0;
  virtual std::optional<ManagerEvent> next_event() = 0;

  // ---- the end that listens ----
  // Returns the number of the listener.
  virtual Result<std::uint16_t> listen(const ManagerAddress& own) = 0;
  // The answer to the newest `called`. Callers that get none are refused when the next one comes.
  virtual Status accept(const ManagerGreeting& greeting) = 0;
  virtual void refuse() = 0;

  // ---- the end that calls: after each call comes its event ----
  struct Destination {
    ManagerAddress own;
    ManagerAddress peer;
    std::uint8_t traffic_class = 0;  // 0: as the administrator says
    int timeout_ms = 0;              // of this step, and of the next one
  };
  virtual Status resolve_address(const Destination& to) = 0;
  virtual Status resolve_route() = 0;
  virtual Status call(const ManagerGreeting& greeting) = 0;
  // After `answered`, when the queue pair is connected.
  virtual Status confirm() = 0;

  // ---- both ----
  // After `called` or `answered`: everything that the queue pair needs, except how long it repeats packets.
  virtual Result<QueuePairPath> path() = 0;
};

class ConnectionManager {
 public:
  virtual ~ConnectionManager() = default;
  virtual Result<std::unique_ptr<ManagedConnection>> new_connection() = 0;
};

}  // namespace seto::rdma
