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

// The address of a TCP socket. IPv4-mapped IPv6 addresses (::ffff:10.0.0.1) are converted to IPv4 on input.
struct SocketAddress {
  AddressFamily family = AddressFamily::ipv4;
  std::array<std::uint8_t, 16> bytes{};  // network byte order; IPv4 uses the first four
  std::uint16_t port = 0;
  std::uint32_t scope = 0;  // interface index of a link-local IPv6 address; valid on this machine only, so it is never sent

  bool operator==(const SocketAddress&) const = default;

  [[nodiscard]] bool is_loopback() const;
  [[nodiscard]] bool is_link_local() const;
  [[nodiscard]] bool is_any() const;
  [[nodiscard]] SocketAddress with_port(std::uint16_t other) const;
};

// The wildcard address. The IPv6 wildcard also accepts IPv4 connections.
[[nodiscard]] SocketAddress any_address(AddressFamily family);

// The form that the system calls take.
struct NativeAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};
[[nodiscard]] NativeAddress native(const SocketAddress& address);
// Returns nothing for families other than IPv4 and IPv6.
[[nodiscard]] std::optional<SocketAddress> from_native(const sockaddr* address);

// "10.0.0.1", "fe80::1%eth0"; "10.0.0.1:80", "[fe80::1%eth0]:80".
[[nodiscard]] std::string host_text(const SocketAddress& address);
[[nodiscard]] std::string to_text(const SocketAddress& address);
// "10.0.0.1:80, [::1]:80".
[[nodiscard]] std::string to_text(const std::vector<SocketAddress>& addresses);

// Parses a numeric address without a port, not a name: "10.0.0.1", "::1", "fe80::1%eth0".
[[nodiscard]] std::optional<SocketAddress> parse_host(std::string_view text);
// Parses the text that to_text writes: a numeric address with a port.
[[nodiscard]] Result<SocketAddress> parse_address(std::string_view text);

struct HostPort {
  std::string host;  // a name or a numeric address, without brackets
  std::uint16_t port = 0;
};
// "node1:4711", "10.0.0.1:80", "[::1]:80".
[[nodiscard]] Result<HostPort> parse_host_port(std::string_view text);

// The wire format: family, address, port. The scope is not encoded. A decoded address may be any address of its family.
inline constexpr std::size_t kEncodedAddressSize = 19;
using EncodedAddress = std::array<std::uint8_t, kEncodedAddressSize>;
[[nodiscard]] EncodedAddress encode(const SocketAddress& address);
[[nodiscard]] std::optional<SocketAddress> decode_address(const EncodedAddress& bytes);

// Returns all addresses of a host name or numeric address, in the order of the system resolver. The look-up runs on its own
// thread, because the resolver may block for any time; that thread is left behind at the deadline.
[[nodiscard]] Result<std::vector<SocketAddress>> resolve(const HostPort& where, Deadline until);

}  // namespace seto
