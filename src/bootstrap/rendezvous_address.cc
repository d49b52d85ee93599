#include "src/bootstrap/rendezvous_address.h"

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "src/base/check.h"

namespace seto {
namespace {

constexpr char kNameFormat[] = "seto-%016" PRIx64;

constexpr std::size_t size_of(AddressFamily family) { return family == AddressFamily::ipv4 ? 4 : 16; }

struct Layout {
  std::uint64_t socket_number;  // 0: no local socket
  std::uint16_t port;
  std::uint8_t count;
  std::uint8_t addresses[kRendezvousAddressSize - 11];  // each address: family, then 4 or 16 bytes
};
static_assert(sizeof(Layout) == kRendezvousAddressSize);

std::string name_of(std::uint64_t number) {
  char name[32];
  std::snprintf(name, sizeof name, kNameFormat, number);
  return name;
}

std::uint64_t number_of(const std::string& name) {
  if (name.empty()) return 0;
  std::uint64_t number = 0;
  const int found = std::sscanf(name.c_str(), "seto-%" SCNx64, &number);
  SETO_CHECK(found == 1 && name_of(number) == name);
  return number;
}

}  // namespace

RendezvousAddressBytes encode(const RendezvousAddress& rendezvous) {
  Layout layout{};
  layout.socket_number = number_of(rendezvous.socket_name);
  std::size_t used = 0;
  for (const SocketAddress& address : rendezvous.addresses) {
    const std::size_t size = size_of(address.family);
    if (used + 1 + size > sizeof layout.addresses) continue;
    layout.port = address.port;
    layout.addresses[used++] = static_cast<std::uint8_t>(address.family);
    std::memcpy(layout.addresses + used, address.bytes.data(), size);
    used += size;
    ++layout.count;
  }
  RendezvousAddressBytes bytes;
  std::memcpy(bytes.data(), &layout, sizeof layout);
  return bytes;
}

std::optional<RendezvousAddress> decode_rendezvous_address(const RendezvousAddressBytes& bytes) {
  Layout layout;
  std::memcpy(&layout, bytes.data(), sizeof layout);
  RendezvousAddress rendezvous;
  if (layout.socket_number != 0) rendezvous.socket_name = name_of(layout.socket_number);
  std::size_t used = 0;
  for (unsigned index = 0; index < layout.count; ++index) {
    if (used >= sizeof layout.addresses) return std::nullopt;
    SocketAddress address;
    address.family = static_cast<AddressFamily>(layout.addresses[used++]);
    if (address.family != AddressFamily::ipv4 && address.family != AddressFamily::ipv6) return std::nullopt;
    const std::size_t size = size_of(address.family);
    if (used + size > sizeof layout.addresses || layout.port == 0) return std::nullopt;
    std::memcpy(address.bytes.data(), layout.addresses + used, size);
    used += size;
    address.port = layout.port;
    rendezvous.addresses.push_back(address);
  }
  return rendezvous;
}

}  // namespace seto
