#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transports/rdma/verbs/port_facts.h"

// Which port, address and partition two contexts use. Pure: the answer follows from what both devices say. One end of a
// connection asks, and tells the other end, so that both use the same.
namespace seto::rdma {

// A port with the name of its device.
struct NamedPort {
  std::string device;
  PortFacts facts;
  std::uint8_t distance = kNear;  // from the memory of its rank
  // It may carry something: it is up, and has an address.
  [[nodiscard]] bool is_usable() const {
    return facts.state == PortState::active && (facts.link_layer == LinkLayer::infiniband || !facts.gids.empty());
  }
  // It has an address of its network. A port on Ethernet without an IP address has one of its own, which few peers can reach.
  [[nodiscard]] bool has_address() const {
    const auto is_of_network = [](const GidEntry& one) { return !one.gid.link_local(); };
    return facts.link_layer == LinkLayer::infiniband || std::any_of(facts.gids.begin(), facts.gids.end(), is_of_network);
  }
};
[[nodiscard]] std::vector<NamedPort> ports_of(const std::vector<DeviceFacts>& devices);

struct PortEnd {
  std::string device;
  std::uint8_t port = 0;
  std::optional<std::uint32_t> gid_index;  // absent: no global route
  Gid gid;
  std::uint16_t lid = 0;
  std::uint16_t pkey_index = 0;
};

struct Candidate {
  PortEnd own;
  PortEnd peer;
  std::uint32_t mtu = 0;        // the smaller one
  std::uint64_t rate_mbit = 0;  // the smaller one; 0: unknown
  std::string why;              // why it stands where it stands, in words
};

struct Selection {
  std::vector<Candidate> candidates;  // best first; each is a pair of ports or of addresses that may reach each other
  std::vector<std::string> rejected;  // why the other pairs of ports cannot, without repetition
};

struct SelectionInput {
  std::vector<NamedPort> own;
  std::vector<NamedPort> peer;
  std::uint32_t interface = 0;  // own one from which packets to the host of the peer leave; 0: unknown
};
[[nodiscard]] Selection select(const SelectionInput& input);
// The failure if there is no candidate: what is wrong, with what to do.
[[nodiscard]] std::string explain_none(const SelectionInput& input, const Selection& selection);

// "mlx5_0 port 1, GID 3 (10.0.0.1), MTU 4096, 100 Gbit/s: RoCE v2, on the interface towards the peer".
[[nodiscard]] std::string to_text(const Candidate& candidate);

}  // namespace seto::rdma
