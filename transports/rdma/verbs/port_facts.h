#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "transports/rdma/verbs/device_distance.h"

// The facts that an RDMA device states: plain values, the same from libibverbs and from a fake.
namespace seto::rdma {

// A global identifier of a port: an IPv6 address, or ::ffff:a.b.c.d for an IPv4 address.
struct Gid {
  std::array<std::uint8_t, 16> bytes{};

  friend bool operator==(const Gid&, const Gid&) = default;
  // fe80::/10 on Ethernet, and the prefix of a subnet without a manager's own prefix on InfiniBand.
  [[nodiscard]] bool link_local() const { return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80; }
  [[nodiscard]] bool ipv4() const;
  [[nodiscard]] bool empty() const { return *this == Gid{}; }
};
// "10.0.0.1" or "fe80::1".
[[nodiscard]] std::string to_text(const Gid& gid);
// The same from text. An empty GID: the text is no address.
[[nodiscard]] Gid gid_of(const std::string& text);

enum class GidType : std::uint8_t { infiniband, roce_v1, roce_v2 };
enum class LinkLayer : std::uint8_t { unspecified, infiniband, ethernet };
enum class PortState : std::uint8_t { down, initializing, armed, active };

struct GidEntry {
  std::uint32_t index = 0;
  Gid gid;
  GidType type = GidType::infiniband;
  std::uint32_t interface = 0;   // index of the network interface; 0: none
  std::uint16_t vlan = 0;        // of that interface; 0: none
  std::uint8_t subnet_bits = 0;  // the first bits of the GID, which all addresses of its subnet share; 0: unknown
};

struct PortFacts {
  std::uint8_t number = 1;
  PortState state = PortState::down;
  LinkLayer link_layer = LinkLayer::unspecified;
  std::uint32_t mtu = 1024;          // bytes of a packet's payload, as active now
  std::uint16_t lid = 0;             // InfiniBand only
  bool needs_global_route = false;   // InfiniBand: several ports share its LID (virtual functions), so packets need a GID
  std::uint64_t rate_mbit = 0;       // 0: unknown
  std::vector<GidEntry> gids;        // valid entries only, ascending index
  std::vector<std::uint16_t> pkeys;  // by index; 0: the entry is not valid
};

struct DeviceFacts {
  std::string name;
  std::uint32_t most_work_requests = 0;  // of one queue
  std::uint32_t most_completions = 0;    // of one completion queue
  std::vector<PortFacts> ports;
  std::uint8_t distance = kNear;  // from the memory of the rank
};

}  // namespace seto::rdma
