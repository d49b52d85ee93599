#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/net/address.h"

namespace seto {

// The addresses of a rendezvous, or of a rank that forwards results: a local socket for peers of the same machine and network
// namespace, TCP addresses for others. Both may be missing.
struct RendezvousAddress {
  std::string socket_name;               // made by random_socket_name(); empty: none
  std::vector<SocketAddress> addresses;  // best first, all with one port

  [[nodiscard]] bool empty() const { return socket_name.empty() && addresses.empty(); }
};

// The wire format: the number in the socket's name, the port, and as many addresses as fit: 16 of IPv4 or 4 of IPv6.
inline constexpr std::size_t kRendezvousAddressSize = 96;
using RendezvousAddressBytes = std::array<char, kRendezvousAddressSize>;
[[nodiscard]] RendezvousAddressBytes encode(const RendezvousAddress& address);
// Returns nothing for malformed bytes.
[[nodiscard]] std::optional<RendezvousAddress> decode_rendezvous_address(const RendezvousAddressBytes& bytes);

}  // namespace seto
