#include "src/net/peer_listener.h"

namespace seto {
namespace {

// A kernel without IPv6 has no socket that accepts both families.
Result<TcpListener> listen_everywhere(PortRange ports, int backlog) {
  auto both = listen_tcp({any_address(AddressFamily::ipv6)}, ports, backlog);
  if (both.ok()) return both;
  auto one = listen_tcp({any_address(AddressFamily::ipv4)}, ports, backlog);
  if (!one.ok()) return both.status();
  return one;
}

}  // namespace

Result<NetworkChoice> NetworkChoice::parse(std::string_view interfaces, std::string_view ports, TlsMode tls) {
  NetworkChoice network;
  network.tls = tls;
  SETO_ASSIGN(network.interfaces, InterfaceFilter::parse(interfaces));
  SETO_ASSIGN(network.ports, parse_ports(ports));
  return network;
}

Result<PeerListener> listen_for_peers(const NetworkChoice& network, int backlog) {
  SETO_ASSIGN(const std::vector<Interface> all, list_interfaces());
  PeerListener result;
  SETO_ASSIGN(result.reachable, candidates(all, network.interfaces));
  if (network.interfaces.empty()) {
    SETO_ASSIGN(result.listener, listen_everywhere(network.ports, backlog));
  } else {
    SETO_ASSIGN(result.listener, listen_tcp(result.reachable, network.ports, backlog));
    result.reachable = result.listener.addresses;
  }
  for (SocketAddress& address : result.reachable) address.port = result.listener.addresses.front().port;
  return result;
}

}  // namespace seto
