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

Result<std::vector<InterfaceFilter>> parse_paths(std::string_view text) {
  std::vector<InterfaceFilter> paths;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    auto filter = InterfaceFilter::parse(one);
    if (!filter.ok() || one.empty() || one.front() == '^')
      return failure(Code::invalid_argument,
                     "SETO_PATHS: '%s' is no interface: use names or address blocks, as fibre0,10.2.0.0/16",
                     std::string(one).c_str());
    paths.push_back(std::move(filter).value());
  }
  if (paths.size() > kMostPaths)
    return failure(Code::invalid_argument, "SETO_PATHS has %zu paths; at most %zu are possible", paths.size(), kMostPaths);
  return paths;
}

// The number of the path whose interface has the address.
std::uint8_t path_of(const std::vector<InterfaceFilter>& paths, const std::vector<Interface>& all, const SocketAddress& address) {
  for (std::size_t path = 0; path < paths.size(); ++path)
    for (const Interface& one : all)
      for (const SocketAddress& its : one.addresses)
        if (its.with_port(0) == address.with_port(0) && paths[path].asks_for(all, one, its))
          return static_cast<std::uint8_t>(path + 1);
  return 0;
}

// Tells for each address on which path it lies. Addresses of better paths change places with those of worse ones; the others stay
// where they are, because within a site a LAN of its own comes first. Fails if a path has no address.
Status order_by_path(PeerListener& listener, const NetworkChoice& network, const std::vector<Interface>& all) {
  struct OfPath {
    std::uint8_t path;
    SocketAddress address;
  };
  std::vector<OfPath> ordered;
  for (const SocketAddress& address : listener.reachable) {
    listener.paths.push_back(path_of(network.paths, all, address));
    if (listener.paths.back() != 0) ordered.push_back({listener.paths.back(), address});
  }
  std::stable_sort(ordered.begin(), ordered.end(), [](const OfPath& one, const OfPath& other) { return one.path < other.path; });
  for (std::size_t index = 0, next = 0; index < listener.reachable.size(); ++index) {
    if (listener.paths[index] == 0) continue;
    listener.paths[index] = ordered[next].path;
    listener.reachable[index] = ordered[next++].address;
  }
  for (std::size_t path = 0; path < network.paths.size(); ++path)
    if (std::count(listener.paths.begin(), listener.paths.end(), path + 1) == 0)
      return failure(Code::invalid_argument, "SETO_PATHS: '%s' has no address that this process listens at; this host has %s",
                     network.paths[path].text().c_str(), to_text(all).c_str());
  return {};
}

}  // namespace

NetworkSettings NetworkSettings::of(const Config& config) {
  return {config.interface, config.ports,     config.tls,
          config.advertise, config.dial_only, {config.tls_certificate, config.tls_key, config.tls_ca},
          config.paths};
}

Result<NetworkChoice> NetworkChoice::parse(const NetworkSettings& settings) {
  NetworkChoice network;
  network.tls.mode = settings.tls;
  SETO_ASSIGN(network.tls.identity, TlsIdentity::of(settings.tls_files));
  SETO_ASSIGN(network.interfaces, InterfaceFilter::parse(settings.interfaces));
  SETO_ASSIGN(network.ports, parse_ports(settings.ports));
  SETO_ASSIGN(network.advertised, parse_advertised(settings.advertised));
  SETO_ASSIGN(network.paths, parse_paths(settings.paths));
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
  SETO_TRY(order_by_path(result, network, all));
  result.paths.insert(result.paths.begin(), network.advertised.size(), 0);
  result.reachable.insert(result.reachable.begin(), network.advertised.begin(), network.advertised.end());
  for (SocketAddress& address : result.reachable) address.port = result.listener.addresses.front().port;
  return result;
}

}  // namespace seto
