#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/bootstrap/rendezvous_address.h"
#include "src/net/peer_listener.h"

namespace seto {

// The listening sockets of a rendezvous, or of a rank that hands results on.
class Doors final {
 public:
  enum class Reach : std::uint8_t { machine, network };

  Doors() = default;
  // A local socket, and for the network a TCP listener. A machine without a usable interface has the local one only, unless
  // SETO_INTERFACE names one.
  static Result<Doors> open(const NetworkChoice& network, Reach reach);
  // One local socket of this name, for ranks of this machine that know it. Code::invalid_usage where the name is taken.
  static Result<Doors> open_named(const std::string& name);
  // TCP alone, on one given port.
  static Result<Doors> open_at(const std::vector<SocketAddress>& addresses);

  [[nodiscard]] const Contact& contact() const { return contact_; }
  // Empty once closed.
  [[nodiscard]] const std::vector<PrivateFd>& sockets() const { return sockets_; }
  void close() { sockets_.clear(); }

  struct Caller {
    PrivateFd fd;
    std::string who;  // for the log: an address, or that it is of this machine
  };
  // The next caller at a door, non-blocking. No valid descriptor: errno says why, EAGAIN that nobody waits. Callers of this
  // machine that run as another user are turned away here, with ECONNABORTED.
  [[nodiscard]] Caller accept(std::size_t door) const;

 private:
  std::vector<PrivateFd> sockets_;
  std::size_t local_count_ = 0;  // of the first sockets
  Contact contact_;
};

}  // namespace seto
