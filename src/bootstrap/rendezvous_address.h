#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/net/address.h"

namespace seto {

// How a rendezvous, or a rank of it, is reached: from its own machine and network namespace by a local socket, from elsewhere by
// TCP. Both may be missing.
struct Contact {
  std::string socket_name;               // of random_socket_name(); empty: none
  std::vector<SocketAddress> addresses;  // best first, all with one port

  [[nodiscard]] bool empty() const { return socket_name.empty() && addresses.empty(); }
};

// As it travels: the number in the socket's name, the port, and as many addresses as fit: 16 of IPv4, 4 of IPv6.
inline constexpr std::size_t kContactSize = 96;
using ContactBytes = std::array<char, kContactSize>;
[[nodiscard]] ContactBytes encode(const Contact& contact);
// Nothing for bytes that no contact has.
[[nodiscard]] std::optional<Contact> decode_contact(const ContactBytes& bytes);

}  // namespace seto
