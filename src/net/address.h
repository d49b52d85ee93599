#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.h"
#include "src/base/result.h"

namespace seto {

enum class AddressFamily : std::uint8_t { ipv4 = 4, ipv6 = 6 };

// Where a TCP socket is or may be reached. IPv4 addresses written as IPv6 ones (::ffff:10.0.0.1) become IPv4 when they enter.
struct SocketAddress {
  AddressFamily family = AddressFamily::ipv4;
  std::array<std::uint8_t, 16> bytes{};  // in the order of the network; IPv4 fills the first four
  std::uint16_t port = 0;
  std::uint32_t scope = 0;  // index of the interface of a link-local IPv6 address; of this machine, so it never travels

  bool operator==(const SocketAddress&) const = default;

  [[nodiscard]] bool is_loopback() const;
  [[nodiscard]] bool is_link_local() const;
  [[nodiscard]] bool is_any() const;
  [[nodiscard]] SocketAddress with_port(std::uint16_t other) const;
};

// Every address of this machine; the IPv6 one takes IPv4 callers as well.
[[nodiscard]] SocketAddress any_address(AddressFamily family);

// What the system calls take.
struct NativeAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};
[[nodiscard]] NativeAddress native(const SocketAddress& address);
// Nothing for families other than IPv4 and IPv6.
[[nodiscard]] std::optional<SocketAddress> from_native(const sockaddr* address);

// "10.0.0.1", "fe80::1%eth0"; "10.0.0.1:80", "[fe80::1%eth0]:80".
[[nodiscard]] std::string host_text(const SocketAddress& address);
[[nodiscard]] std::string to_text(const SocketAddress& address);
// "10.0.0.1:80, [::1]:80".
[[nodiscard]] std::string to_text(const std::vector<SocketAddress>& addresses);

// A number, not a name, without a port: "10.0.0.1", "::1", "fe80::1%eth0".
[[nodiscard]] std::optional<SocketAddress> parse_host(std::string_view text);
// With a port: what to_text writes.
[[nodiscard]] Result<SocketAddress> parse_address(std::string_view text);

struct HostPort {
  std::string host;  // a name or a number, without brackets
  std::uint16_t port = 0;
};
// "node1:4711", "10.0.0.1:80", "[::1]:80".
[[nodiscard]] Result<HostPort> parse_host_port(std::string_view text);

// As it travels: family, address, port. What is decoded may be any address of the family; the scope is lost.
inline constexpr std::size_t kEncodedAddressSize = 19;
using EncodedAddress = std::array<std::uint8_t, kEncodedAddressSize>;
[[nodiscard]] EncodedAddress encode(const SocketAddress& address);
[[nodiscard]] std::optional<SocketAddress> decode_address(const EncodedAddress& bytes);

// All addresses of a host, by name or number, in the order in which the system would try them. The look-up blocks for as long as
// the system likes, so it is done on a thread of its own, which is left behind at the deadline.
[[nodiscard]] Result<std::vector<SocketAddress>> resolve(const HostPort& where, Deadline until);

}  // namespace seto
