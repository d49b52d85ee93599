#pragma once

#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/base/result.h"
#include "src/net/interfaces.h"
#include "src/net/tcp_socket.h"
#include "src/net/tls_identity.h"

namespace seto {

// The settings of a process for its connections to others: the texts of SETO_INTERFACE, SETO_PORTS and SETO_ADVERTISE, SETO_TLS,
// SETO_DIAL_ONLY and the paths for TLS with certificates.
struct NetworkSettings {
  std::string interfaces = {};
  std::string ports = {};
  TlsMode tls = TlsMode::sites;
  std::string advertised = {};
  bool dial_only = false;
  TlsFiles tls_files = {};
  static NetworkSettings of(const Config& config);
  bool operator==(const NetworkSettings&) const = default;
};

// The same, understood. The files of certificates have been read.
struct NetworkChoice {
  InterfaceFilter interfaces;
  PortRange ports;
  TlsChoice tls;
  std::vector<SocketAddress> advertised;  // with port 0
  static Result<NetworkChoice> parse(const NetworkSettings& settings);
};

struct PeerListener {
  TcpListener listener;
  std::vector<SocketAddress> reachable;  // announced to peers, best first; all with the listener's port
};

// Listens for peers on other machines: without a filter on every address with one descriptor, with a filter only on the
// addresses that it allows. Advertised addresses are announced first, for a host on the way passes their ports on unchanged.
[[nodiscard]] Result<PeerListener> listen_for_peers(const NetworkChoice& network, int backlog);

}  // namespace seto
