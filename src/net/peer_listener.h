#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/base/result.h"
#include "src/net/interfaces.h"
#include "src/net/tcp_socket.h"
#include "src/net/tls_identity.h"

namespace seto {

// The settings of a process for its connections to others: the texts of SETO_INTERFACE, SETO_PORTS and SETO_ADVERTISE, SETO_TLS,
// SETO_DIAL_ONLY, the files for TLS with certificates, and SETO_PATHS.
struct NetworkSettings {
  std::string interfaces = {};
  std::string ports = {};
  TlsMode tls = TlsMode::sites;
  std::string advertised = {};
  bool dial_only = false;
  TlsFiles tls_files = {};
  std::string paths = {};
  static NetworkSettings of(const Config& config);
  bool operator==(const NetworkSettings&) const = default;
};

// The same, understood. The files of certificates have been read.
struct NetworkChoice {
  InterfaceFilter interfaces;
  PortRange ports;
  TlsChoice tls;
  std::vector<SocketAddress> advertised;  // with port 0
  std::vector<InterfaceFilter> paths;     // those that lead to other sites, the best first
  static Result<NetworkChoice> parse(const NetworkSettings& settings);
};

struct PeerListener {
  TcpListener listener;
  std::vector<SocketAddress> reachable;  // announced to peers, best first; all with the listener's port
  std::vector<std::uint8_t> paths;       // of each: the number of its path in SETO_PATHS, from 1; 0: of none
};

// Listens for peers on other machines: without a filter on every address with one descriptor, with a filter only on the
// addresses that it allows. The addresses of paths come before others, in the order of the paths. Advertised addresses are
// announced first, for a host on the way passes their ports on unchanged.
inline constexpr std::size_t kMostPaths = 4;
[[nodiscard]] Result<PeerListener> listen_for_peers(const NetworkChoice& network, int backlog);

}  // namespace seto
