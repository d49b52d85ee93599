#include "src/net/address.h"

#include <arpa/inet.h>
#include <net/if.h>

#include <algorithm>
#include <cstring>

#include "src/base/text.h"

namespace seto {
namespace {

constexpr std::size_t kIpv4Size = 4;

bool is_mapped(const in6_addr& address) { return IN6_IS_ADDR_V4MAPPED(&address); }

SocketAddress from_ipv4(const void* bytes, std::uint16_t port) {
  SocketAddress address;
  std::memcpy(address.bytes.data(), bytes, kIpv4Size);
  address.port = port;
  return address;
}

SocketAddress from_ipv6(const in6_addr& bytes, std::uint16_t port, std::uint32_t scope) {
  if (is_mapped(bytes)) return from_ipv4(bytes.s6_addr + 12, port);
  SocketAddress address;
  address.family = AddressFamily::ipv6;
  std::memcpy(address.bytes.data(), &bytes, sizeof bytes);
  address.port = port;
  address.scope = address.is_link_local() ? scope : 0;
  return address;
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  const auto number = parse_uint(text);
  if (!number || *number > 65'535) return std::nullopt;
  return static_cast<std::uint16_t>(*number);
}

// The name of an interface of this machine, or its index.
std::optional<std::uint32_t> parse_scope(const std::string& text) {
  if (const unsigned index = if_nametoindex(text.c_str()); index != 0) return index;
  const auto number = parse_uint(text);
  if (!number || *number == 0 || *number > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

}  // namespace

bool SocketAddress::is_loopback() const {
  if (family == AddressFamily::ipv4) return bytes[0] == 127;
  return std::all_of(bytes.begin(), bytes.end() - 1, [](std::uint8_t byte) { return byte == 0; }) && bytes.back() == 1;
}

bool SocketAddress::is_link_local() const {
  if (family == AddressFamily::ipv4) return bytes[0] == 169 && bytes[1] == 254;
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

bool SocketAddress::is_any() const {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

SocketAddress SocketAddress::with_port(std::uint16_t other) const {
  SocketAddress address = *this;
  address.port = other;
  return address;
}

SocketAddress any_address(AddressFamily family) {
  SocketAddress address;
  address.family = family;
  return address;
}

NativeAddress native(const SocketAddress& address) {
  NativeAddress result;
  if (address.family == AddressFamily::ipv4) {
    sockaddr_in value{};
    value.sin_family = AF_INET;
    value.sin_port = htons(address.port);
    std::memcpy(&value.sin_addr, address.bytes.data(), sizeof value.sin_addr);
    std::memcpy(&result.storage, &value, sizeof value);
    result.size = sizeof value;
  } else {
    sockaddr_in6 value{};
    value.sin6_family = AF_INET6;
    value.sin6_port = htons(address.port);
    value.sin6_scope_id = address.scope;
    std::memcpy(&value.sin6_addr, address.bytes.data(), sizeof value.sin6_addr);
    std::memcpy(&result.storage, &value, sizeof value);
    result.size = sizeof value;
  }
  return result;
}

std::optional<SocketAddress> from_native(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  if (address->sa_family == AF_INET) {
    sockaddr_in value;
    std::memcpy(&value, address, sizeof value);
    return from_ipv4(&value.sin_addr, ntohs(value.sin_port));
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 value;
    std::memcpy(&value, address, sizeof value);
    return from_ipv6(value.sin6_addr, ntohs(value.sin6_port), value.sin6_scope_id);
  }
  return std::nullopt;
}

std::string host_text(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN];
  inet_ntop(address.family == AddressFamily::ipv4 ? AF_INET : AF_INET6, address.bytes.data(), text, sizeof text);
  std::string host = text;
  if (address.scope != 0) {
    char name[IF_NAMESIZE];
    host += '%';
    host += if_indextoname(address.scope, name) != nullptr ? std::string(name) : std::to_string(address.scope);
  }
  return host;
}

std::string to_text(const SocketAddress& address) {
  const std::string port = std::to_string(address.port);
  if (address.family == AddressFamily::ipv4) return host_text(address) + ":" + port;
  std::string text = "[";
  text += host_text(address);
  return text += "]:" + port;
}

std::string to_text(const std::vector<SocketAddress>& addresses) {
  std::string text;
  for (const SocketAddress& address : addresses) {
    if (!text.empty()) text += ", ";
    text += to_text(address);
  }
  return text;
}

std::optional<SocketAddress> parse_host(std::string_view text) {
  const std::size_t percent = text.find('%');
  const std::string number(text.substr(0, percent));
  in_addr ipv4;
  if (percent == std::string_view::npos && inet_pton(AF_INET, number.c_str(), &ipv4) == 1) return from_ipv4(&ipv4, 0);
  in6_addr ipv6;
  if (inet_pton(AF_INET6, number.c_str(), &ipv6) != 1) return std::nullopt;
  if (percent == std::string_view::npos) return from_ipv6(ipv6, 0, 0);
  const auto scope = parse_scope(std::string(text.substr(percent + 1)));
  if (!scope) return std::nullopt;
  return from_ipv6(ipv6, 0, *scope);
}

Result<HostPort> parse_host_port(std::string_view text) {
  const bool bracketed = text.starts_with('[');
  const std::size_t colon = text.rfind(':');
  const std::size_t host_end = bracketed ? text.find(']') : colon;
  const bool shaped = colon != std::string_view::npos && host_end != std::string_view::npos &&
                      colon == host_end + (bracketed ? 1 : 0) && (bracketed || text.find(':') == colon);
  const auto port = shaped ? parse_port(text.substr(colon + 1)) : std::nullopt;
  const std::string_view host = shaped ? text.substr(bracketed ? 1 : 0, host_end - (bracketed ? 1 : 0)) : std::string_view();
  if (!port || host.empty()) {
    return failure(Code::invalid_argument,
                   "'%.200s' is not an address: write host:port, such as node1:4711, 10.0.0.1:4711 or [::1]:4711",
                   std::string(text).c_str());
  }
  return HostPort{std::string(host), *port};
}

Result<SocketAddress> parse_address(std::string_view text) {
  SETO_ASSIGN(const HostPort where, parse_host_port(text));
  const auto address = parse_host(where.host);
  if (!address) return failure(Code::invalid_argument, "'%.200s' is not an IPv4 or IPv6 address", where.host.c_str());
  return address->with_port(where.port);
}

EncodedAddress encode(const SocketAddress& address) {
  EncodedAddress bytes{};
  bytes[0] = static_cast<std::uint8_t>(address.family);
  std::copy(address.bytes.begin(), address.bytes.end(), bytes.begin() + 1);
  bytes[17] = static_cast<std::uint8_t>(address.port >> 8);
  bytes[18] = static_cast<std::uint8_t>(address.port & 0xff);
  return bytes;
}

std::optional<SocketAddress> decode_address(const EncodedAddress& bytes) {
  if (bytes[0] != static_cast<std::uint8_t>(AddressFamily::ipv4) && bytes[0] != static_cast<std::uint8_t>(AddressFamily::ipv6)) {
    return std::nullopt;
  }
  const auto port = static_cast<std::uint16_t>(bytes[17] << 8 | bytes[18]);
  if (bytes[0] == static_cast<std::uint8_t>(AddressFamily::ipv4)) return from_ipv4(bytes.data() + 1, port);
  in6_addr ipv6;
  std::memcpy(&ipv6, bytes.data() + 1, sizeof ipv6);
  return from_ipv6(ipv6, port, 0);
}

}  // namespace seto
