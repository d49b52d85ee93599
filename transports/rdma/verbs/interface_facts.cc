#include "transports/rdma/verbs/interface_facts.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

namespace seto::rdma {
namespace {

constexpr std::size_t kIpv4Start = 12;  // of an IPv4 address within a GID

// The address or the mask as the bytes of a GID. An empty GID: of neither family.
Gid bytes_of(const sockaddr* address, int family) {
  Gid gid;
  if (address == nullptr) return gid;
  if (family == AF_INET) {
    const in_addr& ip = reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
    gid.bytes[10] = gid.bytes[11] = 0xff;
    std::memcpy(gid.bytes.data() + kIpv4Start, &ip, sizeof ip);
  } else if (family == AF_INET6) {
    const in6_addr& ip = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    std::memcpy(gid.bytes.data(), &ip, sizeof ip);
  }
  return gid;
}

std::uint8_t leading_ones(const Gid& mask, std::size_t from) {
  int bits = static_cast<int>(from) * 8;
  for (std::size_t i = from; i < mask.bytes.size(); ++i) {
    bits += std::countl_one(mask.bytes[i]);
    if (mask.bytes[i] != 0xff) break;
  }
  return static_cast<std::uint8_t>(bits);
}

}  // namespace

std::uint16_t vlan_in(const std::string& config, const std::string& interface) {
  std::istringstream lines(config);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, bar;
    unsigned vlan = 0;
    if (words >> name >> bar >> vlan && name == interface && bar == "|" && vlan < 4096) return static_cast<std::uint16_t>(vlan);
  }
  return 0;
}

std::uint16_t vlan_of(std::uint32_t interface) {
  char name[IF_NAMESIZE] = "";
  if (interface == 0 || if_indextoname(interface, name) == nullptr) return 0;
  std::ifstream file("/proc/net/vlan/config");
  std::ostringstream config;
  config << file.rdbuf();
  return vlan_in(config.str(), name);
}

std::uint8_t subnet_bits_in(const ifaddrs* addresses, const std::string& interface, const Gid& gid) {
  for (const ifaddrs* one = addresses; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_netmask == nullptr || one->ifa_name != interface) continue;
    const int family = one->ifa_addr->sa_family;
    if (bytes_of(one->ifa_addr, family) == gid)
      return leading_ones(bytes_of(one->ifa_netmask, family), family == AF_INET ? kIpv4Start : 0);
  }
  return 0;
}

std::uint8_t subnet_bits_of(std::uint32_t interface, const Gid& gid) {
  char name[IF_NAMESIZE] = "";
  ifaddrs* all = nullptr;
  if (interface == 0 || if_indextoname(interface, name) == nullptr || getifaddrs(&all) != 0) return 0;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, freeifaddrs);
  return subnet_bits_in(all, name, gid);
}

}  // namespace seto::rdma
