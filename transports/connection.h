#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/types.h"

namespace seto {

class ControlChannel;

// The context at the other end of a connection, and the attempt that opened the connection.
struct PeerContext {
  std::string process;  // Place::process
  ContextId context = 0;
  AttemptId attempt = 0;
};

enum class Reach : std::uint8_t { process, host, network };

// The reliable link between two contexts, shared by all communicators of the two. It is open while a shared_ptr to it exists. Any
// thread.
class Connection {
 public:
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] const PeerContext& peer() const { return peer_; }
  // Where the peer is: in this process, on this host, or beyond.
  [[nodiscard]] Reach reach() const { return reach_; }
  // The medium in words: "this process", "shared memory" or "TCP 10.0.0.1 -> 10.0.0.2".
  [[nodiscard]] const std::string& way() const { return way_; }

  // The shortest round trip that the kernel measured when the connection was made, in microseconds; the same at both ends. 0:
  // unknown, as for shared memory.
  [[nodiscard]] virtual std::uint32_t round_trip_us() const { return 0; }

  // The bytes that the network took from this end and gave to it since the connection was made, without headers of TLS, TCP
  // and below. 0: not counted, as within a host. Any thread.
  struct Traffic {
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
  };
  [[nodiscard]] virtual Traffic traffic() const { return {}; }
  // The view of the kernel of the sockets of this connection, now. Any thread; some microseconds for each socket.
  struct Sockets {
    std::uint32_t open = 0;
    bool all_broke = false;                    // there were some, and they are opened again
    std::uint32_t paths = 1;                   // of SETO_PATHS; the sockets are spread over them
    std::uint32_t path = 0;                    // counted from 0: the best that data takes
    std::uint32_t used_paths = 1;              // all that data takes, a bit for each
    std::uint32_t round_trip_us = 0;           // by now, of the socket of that path where it is shortest; 0: unknown
    std::uint32_t shortest_round_trip_us = 0;  // since they were opened; 0: unknown
    std::uint64_t bytes_sent = 0;              // with headers of TLS, and with those that were sent again; 0: unknown
    std::uint64_t bytes_resent = 0;
  };
  // Absent: it has no sockets, as within a host.
  [[nodiscard]] virtual std::optional<Sockets> ask_sockets() const { return std::nullopt; }
  // The name of the cipher suite that protects these bytes, "none", or "not open" where no socket has carried any yet. Any
  // thread.
  [[nodiscard]] virtual const char* cipher() const { return "none"; }
  // A far link on which this end sends, as the traffic of the job showed it. Any thread.
  struct SendingRate {
    std::uint64_t bytes_per_second = 0;    // when the link was full; 0: it never was
    std::uint64_t full_ns = 0;             // when it was so last, by the monotonic clock
    std::uint64_t carried_per_second = 0;  // of late, full or not: bytes
    std::uint64_t seen_ns = 0;             // when this end last looked while it sent
    std::uint32_t round_trip_us = 0;       // of the link without its queues; 0: unknown
  };
  [[nodiscard]] virtual SendingRate sending_rate() const { return {}; }
  // The peer is at another site: all such connections of this context together send at most so many bytes per second, headers
  // included. The smallest value that was given counts. Connections within a host have no pace.
  virtual void limit_pace_to_site(std::uint64_t bytes_per_second) { (void)bytes_per_second; }
  // The control channel to the process of the peer. Null: it is on this host and needs none.
  [[nodiscard]] virtual ControlChannel* control() const { return nullptr; }

  // The peer or its process has ended, is frozen, or cannot be reached any more. Never true for a context of this process.
  [[nodiscard]] virtual bool dead() const = 0;
  // The peer will never read this context's memory again. A frozen process may, once it continues.
  [[nodiscard]] virtual bool ended() const = 0;
  // Why dead() is true, for example "its process has ended".
  [[nodiscard]] virtual std::string why_dead() const = 0;

 protected:
  Connection(PeerContext peer, Reach reach, std::string way) : peer_(std::move(peer)), reach_(reach), way_(std::move(way)) {}

 private:
  const PeerContext peer_;
  const Reach reach_;
  const std::string way_;
};

using Connections = std::vector<std::shared_ptr<Connection>>;

}  // namespace seto
