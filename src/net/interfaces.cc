#include "src/net/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <net/if_arp.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "src/net/local_socket.h"

namespace seto {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kFastestMbit = 10'000'000;  // drivers that do not know their speed say -1, or anything

// Name prefixes of drivers whose interfaces lead to virtual machines and containers of this machine.
constexpr std::string_view kInternalNames[] = {"docker", "br-", "virbr", "veth", "vnet", "cni",  "flannel", "cali",
                                               "podman", "lxc", "lxd",   "tun",  "tap",  "kube", "dummy",   "vmnet"};

constexpr const char* kClasses = "/sys/class/net";

// Hardware types of interfaces whose packets travel inside those of another one. WireGuard and tun have none; a tap has that of
// Ethernet.
constexpr int kTunnelTypes[] = {ARPHRD_NONE,  ARPHRD_PPP, ARPHRD_TUNNEL, ARPHRD_TUNNEL6, ARPHRD_SIT,
                                ARPHRD_IPGRE, 823 /* IPv6 GRE */};

bool has(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool holds_a_card(const fs::path& classes, const fs::path& bridge) {
  std::error_code error;
  for (fs::directory_iterator port(bridge / "brif", error), end; !error && port != end; port.increment(error)) {
    if (has(classes / port->path().filename() / "device")) return true;
  }
  return false;
}

bool is_tunnel(const fs::path& folder) {
  std::ifstream types(folder / "type");
  int type = 0;
  if (types >> type && std::find(std::begin(kTunnelTypes), std::end(kTunnelTypes), type) != std::end(kTunnelTypes)) return true;
  std::ifstream facts(folder / "uevent");
  for (std::string line; std::getline(facts, line);)
    if (line == "DEVTYPE=wireguard" || line == "DEVTYPE=ppp") return true;
  return false;
}

std::uint32_t speed_of(const std::string& name) {
  std::ifstream file(fs::path(kClasses) / name / "speed");
  long speed = 0;
  if (!(file >> speed) || speed <= 0 || speed > kFastestMbit) return 0;
  return static_cast<std::uint32_t>(speed);
}

Interface described(const std::string& name, unsigned flags) {
  Interface one;
  one.name = name;
  one.index = if_nametoindex(name.c_str());
  one.kind = kind_of(kClasses, name, flags);
  one.up = (flags & IFF_UP) != 0 && (flags & IFF_RUNNING) != 0;
  one.speed_mbit = speed_of(name);
  return one;
}

struct Candidate {
  int tier;
  std::uint32_t speed_mbit;
  SocketAddress address;
};

// In the order in which peers try them.
enum Tier : int { kOrdinary, kInternal, kLinkLocal, kTunnel, kLoopback, kSelectedLoopback };

int tier_of(const Interface& one, const SocketAddress& address) {
  if (one.kind == InterfaceKind::loopback || address.is_loopback()) return kLoopback;
  if (one.kind == InterfaceKind::tunnel) return kTunnel;
  if (address.is_link_local()) return kLinkLocal;
  return one.kind == InterfaceKind::internal ? kInternal : kOrdinary;
}

}  // namespace

std::string_view name_of(InterfaceKind kind) {
  switch (kind) {
    case InterfaceKind::ordinary:
      return "ordinary";
    case InterfaceKind::internal:
      return "internal";
    case InterfaceKind::tunnel:
      return "tunnel";
    case InterfaceKind::loopback:
      return "loopback";
  }
  return "unknown";
}

InterfaceKind kind_of(const std::string& classes, const std::string& name, unsigned flags) {
  if ((flags & IFF_LOOPBACK) != 0) return InterfaceKind::loopback;
  const fs::path folder = fs::path(classes) / name;
  if (has(folder / "device")) return InterfaceKind::ordinary;
  if (has(folder / "bridge")) return holds_a_card(classes, folder) ? InterfaceKind::ordinary : InterfaceKind::internal;
  if (is_tunnel(folder)) return InterfaceKind::tunnel;
  if (has(folder / "tun_flags")) return InterfaceKind::internal;
  const bool internal = std::any_of(std::begin(kInternalNames), std::end(kInternalNames),
                                    [&](std::string_view begin) { return name.starts_with(begin); });
  return internal ? InterfaceKind::internal : InterfaceKind::ordinary;
}

Result<std::vector<Interface>> list_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return socket_failure("cannot list the network interfaces");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> held(first, freeifaddrs);
  std::vector<Interface> all;
  std::map<std::string, std::size_t> places;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    const auto [place, fresh] = places.try_emplace(entry->ifa_name, all.size());
    if (fresh) all.push_back(described(entry->ifa_name, entry->ifa_flags));
    if (const auto address = from_native(entry->ifa_addr)) all[place->second].addresses.push_back(*address);
  }
  return all;
}

Result<std::vector<SocketAddress>> candidates(const std::vector<Interface>& all, const InterfaceFilter& filter) {
  std::vector<Candidate> found;
  bool reaches_further = false;
  for (const Interface& one : all) {
    for (const SocketAddress& address : one.addresses) {
      if (!one.up || !filter.allows(all, one, address)) continue;
      found.push_back({tier_of(one, address), one.speed_mbit, address});
      int& tier = found.back().tier;
      reaches_further = reaches_further || (tier == kLinkLocal ? address.family == AddressFamily::ipv6 : tier < kLoopback);
      if (tier == kLoopback && filter.asks_for(all, one, address)) tier = kSelectedLoopback;
    }
  }
  if (reaches_further) std::erase_if(found, [](const Candidate& one) { return one.tier == kLoopback; });
  std::stable_sort(found.begin(), found.end(), [](const Candidate& left, const Candidate& right) {
    return left.tier != right.tier ? left.tier < right.tier : left.speed_mbit > right.speed_mbit;
  });
  if (found.empty() && !filter.empty()) {
    return failure(Code::unavailable, "SETO_INTERFACE=%s leaves no interface that is up and has an address; there are %s",
                   filter.text().c_str(), to_text(all).c_str());
  }
  if (found.empty()) {
    return failure(Code::unavailable, "no network interface is up and has an address; there are %s", to_text(all).c_str());
  }
  std::vector<SocketAddress> addresses;
  for (const Candidate& one : found) addresses.push_back(one.address);
  return addresses;
}

std::vector<SocketAddress> with_scopes(const SocketAddress& address, const std::vector<Interface>& own) {
  if (address.family != AddressFamily::ipv6 || !address.is_link_local() || address.scope != 0) return {address};
  std::vector<SocketAddress> forms;
  for (const Interface& one : own) {
    const bool linked = std::any_of(one.addresses.begin(), one.addresses.end(), [](const SocketAddress& mine) {
      return mine.family == AddressFamily::ipv6 && mine.is_link_local();
    });
    if (!one.up || !linked) continue;
    forms.push_back(address);
    forms.back().scope = one.index;
  }
  return forms;
}

std::string to_text(const std::vector<Interface>& all) {
  std::string text;
  for (const Interface& one : all) {
    if (!text.empty()) text += ", ";
    text += one.name + (one.up ? " (" : " (down");
    for (std::size_t index = 0; index < one.addresses.size(); ++index) {
      if (index > 0 || !one.up) text += ", ";
      text += host_text(one.addresses[index]);
    }
    text += one.up && one.addresses.empty() ? "no address)" : ")";
  }
  return text.empty() ? "none" : text;
}

}  // namespace seto
