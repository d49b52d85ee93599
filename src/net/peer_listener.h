#pragma once

#include <string_view>
#include <vector>

#include "src/base/config.h"
#include "src/base/result.h"
#include "src/net/interfaces.h"
#include "src/net/tcp_socket.h"

namespace seto {

// The addresses and ports at which this process may listen, and how its connections are protected: SETO_INTERFACE, SETO_PORTS
// and SETO_TLS.
struct NetworkChoice {
  InterfaceFilter interfaces;
  PortRange ports;
  TlsMode tls = TlsMode::sites;
  static Result<NetworkChoice> parse(std::string_view interfaces, std::string_view ports, TlsMode tls = TlsMode::sites);
};

struct PeerListener {
  TcpListener listener;
  std::vector<SocketAddress> reachable;  // announced to peers, best first; all with the listener's port
};

// Listens for peers on other machines: without a filter on every address with one descriptor, with a filter only on the
// addresses that it allows.
[[nodiscard]] Result<PeerListener> listen_for_peers(const NetworkChoice& network, int backlog);

}  // namespace seto
