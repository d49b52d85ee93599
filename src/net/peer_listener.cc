#include "src/net/peer_listener.h"

#include <algorithm>
#include <string_view>

namespace seto {
namespace {

constexpr std::size_t kMostAdvertised = 4;

// A kernel without IPv6 has no socket that accepts both families.
Result<TcpListener> listen_everywhere(PortRange ports, int backlog) {
  auto both = listen_tcp({any_address(AddressFamily::ipv6)}, ports, backlog);
  if (both.ok()) return both;
  auto one = listen_tcp({any_address(AddressFamily::ipv4)}, ports, backlog);
  if (!one.ok()) return both.status();
  return one;
}

Result<std::vector<SocketAddress>> parse_advertised(std::string_view text) {
  std::vector<SocketAddress> addresses;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    const auto address = parse_host(one);
    if (!address || address->is_any() || address->is_link_local())
      return failure(
          Code::invalid_argument,
          "SETO_ADVERTISE: '%s' is no address that other networks can reach: use numeric ones, as 203.0.113.7,2001:db8::7",
          std::string(one).c_str());
    addresses.push_back(*address);
  }
  if (addresses.size() > kMostAdvertised)
    return failure(Code::invalid_argument, "SETO_ADVERTISE has %zu addresses; at most %zu are possible", addresses.size(),
                   kMostAdvertised);
  return addresses;
}

}  // namespace

NetworkSettings NetworkSettings::of(const Config& config) {
  return {config.interface, config.ports,     config.tls,
          config.advertise, config.dial_only, {config.tls_certificate, config.tls_key, config.tls_ca}};
}

Result<NetworkChoice> NetworkChoice::parse(const NetworkSettings& settings) {
  NetworkChoice network;
  network.tls.mode = settings.tls;
  SETO_ASSIGN(network.tls.identity, TlsIdentity::of(settings.tls_files));
  SETO_ASSIGN(network.interfaces, InterfaceFilter::parse(settings.interfaces));
  SETO_ASSIGN(network.ports, parse_ports(settings.ports));
  SETO_ASSIGN(network.advertised, parse_advertised(settings.advertised));
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
  result.reachable.insert(result.reachable.begin(), network.advertised.begin(), network.advertised.end());
  for (SocketAddress& address : result.reachable) address.port = result.listener.addresses.front().port;
  return result;
}

}  // namespace seto
