#pragma once

#include <cstdint>
#include <string>

namespace seto::rdma {

// The VLAN of a network interface, from a text like /proc/net/vlan/config. 0: it is in none.
[[nodiscard]] std::uint16_t vlan_in(const std::string& config, const std::string& interface);
// The same of this machine.
[[nodiscard]] std::uint16_t vlan_of(std::uint32_t interface);

}  // namespace seto::rdma
