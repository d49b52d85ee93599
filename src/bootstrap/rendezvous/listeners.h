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

// The listening sockets of a rendezvous, or of a rank that forwards results.
class Listeners final {
 public:
  enum class Reach : std::uint8_t { machine, network };

  Listeners() = default;
  // Opens a local socket, and with Reach::network also a TCP listener. A machine without a usable interface gets the local socket
  // only, unless SETO_INTERFACE names an interface.
  static Result<Listeners> open(const NetworkChoice& network, Reach reach);
  // Opens one local socket of this name, for ranks of this machine that know it. Fails with Code::invalid_usage where the name is
  // taken.
  static Result<Listeners> open_named(const std::string& name);
  // Opens TCP listeners only, on the one given port.
  static Result<Listeners> open_at(const std::vector<SocketAddress>& addresses);

  [[nodiscard]] const RendezvousAddress& address() const { return address_; }
  // Empty after close().
  [[nodiscard]] const std::vector<PrivateFd>& sockets() const { return sockets_; }
  void close() { sockets_.clear(); }

  struct Caller {
    PrivateFd fd;
    std::string who;  // for the log: its address, or that it is on this machine
  };
  // Accepts the next connection of a listener without blocking. If the descriptor is not valid, errno gives the reason; EAGAIN
  // means that no connection waits. A local peer that runs as another user is rejected here, with ECONNABORTED.
  [[nodiscard]] Caller accept(std::size_t listener) const;

 private:
  std::vector<PrivateFd> sockets_;
  std::size_t local_count_ = 0;  // that many of the first sockets are local ones
  RendezvousAddress address_;
};

}  // namespace seto
