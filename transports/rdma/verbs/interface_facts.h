#pragma once

#include <cstdint>
#include <string>

#include "transports/rdma/verbs/port_facts.h"

struct ifaddrs;

namespace seto::rdma {

// The VLAN of a network interface, from a text like /proc/net/vlan/config. 0: it is in none.
[[nodiscard]] std::uint16_t vlan_in(const std::string& config, const std::string& interface);
// The same of this machine.
[[nodiscard]] std::uint16_t vlan_of(std::uint32_t interface);

// The bits of a GID that all addresses of its subnet share, by the mask that the address has on its interface. 0: the interface
// does not have it, or no mask.
[[nodiscard]] std::uint8_t subnet_bits_in(const ifaddrs* addresses, const std::string& interface, const Gid& gid);
// The same of this machine.
[[nodiscard]] std::uint8_t subnet_bits_of(std::uint32_t interface, const Gid& gid);

}  // namespace seto::rdma
