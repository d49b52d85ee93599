#include "transports/rdma/connect/selection.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace seto::rdma {
namespace {

constexpr std::uint16_t kFullMember = 0x8000;
// The bits of usual subnets, for an address whose mask is not known. An address of IPv4 is the end of a GID.
constexpr int kUsualIpv4Bits = 96 + 24;
constexpr int kUsualIpv6Bits = 64;

// The order of candidates: larger is better, the first difference decides.
// RoCE v2, routable, probably reachable, near the memory of both ranks, on the interface towards the peer, in the same VLAN, the
// common bits of both addresses, the rate, IPv4.
using Rank = std::tuple<int, int, int, int, int, int, int, std::uint64_t, int>;

struct Ranked {
  Rank rank;
  Candidate candidate;
};

struct Pkeys {
  std::uint16_t own = 0;
  std::uint16_t peer = 0;
};

// Two ports share a partition if their keys are equal and not both are limited members.
std::optional<Pkeys> common_pkey(const PortFacts& own, const PortFacts& peer) {
  for (std::size_t a = 0; a < own.pkeys.size(); ++a)
    for (std::size_t b = 0; b < peer.pkeys.size(); ++b) {
      const bool same = own.pkeys[a] != 0 && ((own.pkeys[a] ^ peer.pkeys[b]) & ~kFullMember) == 0;
      if (same && ((own.pkeys[a] | peer.pkeys[b]) & kFullMember) != 0)
        return Pkeys{static_cast<std::uint16_t>(a), static_cast<std::uint16_t>(b)};
    }
  return std::nullopt;
}

int common_bits(const Gid& a, const Gid& b) {
  int bits = 0;
  for (std::size_t i = 0; i < a.bytes.size(); ++i) {
    const auto differ = static_cast<std::uint8_t>(a.bytes[i] ^ b.bytes[i]);
    if (differ != 0) return bits + std::countl_zero(differ);
    bits += 8;
  }
  return bits;
}

int subnet_bits(const GidEntry& entry) {
  if (entry.subnet_bits != 0) return entry.subnet_bits;
  return entry.gid.ipv4() ? kUsualIpv4Bits : kUsualIpv6Bits;
}

Candidate candidate_of(const NamedPort& own, const NamedPort& peer, const Pkeys& pkeys) {
  Candidate candidate;
  candidate.own = {own.device, own.facts.number, std::nullopt, {}, own.facts.lid, pkeys.own};
  candidate.peer = {peer.device, peer.facts.number, std::nullopt, {}, peer.facts.lid, pkeys.peer};
  candidate.mtu = std::min(own.facts.mtu, peer.facts.mtu);
  candidate.rate_mbit = std::min(own.facts.rate_mbit, peer.facts.rate_mbit);
  return candidate;
}

void set_gids(Candidate& candidate, const GidEntry& own, const GidEntry& peer) {
  candidate.own.gid_index = own.index;
  candidate.own.gid = own.gid;
  candidate.peer.gid_index = peer.index;
  candidate.peer.gid = peer.gid;
}

std::string name(const NamedPort& port) { return port.device + " port " + std::to_string(port.facts.number); }

// ---- InfiniBand ----

int nearness(const NamedPort& own, const NamedPort& peer) { return -(own.distance + peer.distance); }

std::string far_text(const NamedPort& own, const NamedPort& peer) {
  return std::string(own.distance > kNear ? ", far from the memory of this rank" : "") +
         (peer.distance > kNear ? ", far from that of the peer" : "");
}

// Empty: a candidate was added.
std::string add_infiniband(const NamedPort& own, const NamedPort& peer, const Pkeys& pkeys, std::vector<Ranked>& all) {
  Candidate candidate = candidate_of(own, peer, pkeys);
  const bool has_gids = !own.facts.gids.empty() && !peer.facts.gids.empty();
  const bool one_subnet = !has_gids || std::equal(own.facts.gids[0].gid.bytes.begin(), own.facts.gids[0].gid.bytes.begin() + 8,
                                                  peer.facts.gids[0].gid.bytes.begin());
  const bool by_gid = own.facts.needs_global_route || peer.facts.needs_global_route;
  if (by_gid && !has_gids) {
    const NamedPort& without = own.facts.gids.empty() ? own : peer;
    return name(without) + " has no GID, and packets between these ports need one";
  }
  if (one_subnet) {
    if (own.facts.lid == 0 || peer.facts.lid == 0)
      return name(own.facts.lid == 0 ? own : peer) + " has no LID: no subnet manager has set it up";
    if (by_gid) set_gids(candidate, own.facts.gids[0], peer.facts.gids[0]);
    candidate.why = std::string("one InfiniBand subnet, by ") + (by_gid ? "GID: ports share a LID" : "LID") + far_text(own, peer);
    all.push_back({{1, 1, 1, nearness(own, peer), 0, 1, 0, candidate.rate_mbit, 0}, std::move(candidate)});
    return {};
  }
  set_gids(candidate, own.facts.gids[0], peer.facts.gids[0]);
  candidate.why = "InfiniBand subnets differ, so a router is needed" + far_text(own, peer);
  all.push_back({{1, 0, 0, nearness(own, peer), 0, 0, 0, candidate.rate_mbit, 0}, std::move(candidate)});
  return {};
}

// ---- Ethernet ----

// Why these addresses cannot reach each other. Empty: they may.
const char* unreachable(const GidEntry& own, const GidEntry& peer) {
  if (own.type != peer.type) return "of different types of RoCE";
  if (own.type == GidType::infiniband) return "of no type of RoCE";
  if (own.gid.ipv4() != peer.gid.ipv4()) return "of different families";
  if (own.gid.link_local() != peer.gid.link_local()) return "one link-local and one not";
  const bool within_one_link = own.type == GidType::roce_v1 || own.gid.link_local();
  if (within_one_link && own.vlan != peer.vlan) return "of different VLANs without a router";
  return "";
}

std::string add_ethernet(const NamedPort& own, const NamedPort& peer, const Pkeys& pkeys, std::uint32_t interface,
                         std::vector<Ranked>& all) {
  if (own.facts.gids.empty() || peer.facts.gids.empty())
    return name(own.facts.gids.empty() ? own : peer) + " has no GID: its network interface has no address";
  std::string why_not;
  bool added = false;
  for (const GidEntry& a : own.facts.gids)
    for (const GidEntry& b : peer.facts.gids) {
      if (const char* const reason = unreachable(a, b); *reason != '\0') {
        if (why_not.empty()) why_not = reason;
        continue;
      }
      Candidate candidate = candidate_of(own, peer, pkeys);
      set_gids(candidate, a, b);
      const bool towards = interface != 0 && a.interface == interface;
      const bool routable = !a.gid.link_local();
      const bool same_vlan = a.vlan == b.vlan;
      candidate.why = std::string(a.type == GidType::roce_v2 ? "RoCE v2" : "RoCE v1") + (routable ? "" : ", link-local") +
                      (towards ? ", on the interface towards the peer" : "") +
                      (same_vlan ? "" : ", to another VLAN through a router") + far_text(own, peer);
      const int bits = common_bits(a.gid, b.gid);
      // The kernel routes there, or the peer's address is in the subnet of the own one.
      const bool reachable = towards || bits >= subnet_bits(a);
      const Rank rank{a.type == GidType::roce_v2, routable,    reachable, nearness(own, peer), towards, same_vlan, bits,
                      candidate.rate_mbit,        a.gid.ipv4()};
      all.push_back({rank, std::move(candidate)});
      added = true;
    }
  return added ? "" : name(own) + " and " + name(peer) + ": all pairs of GIDs are unusable, the first " + why_not;
}

// ---- both ----

std::string add_pair(const NamedPort& own, const NamedPort& peer, std::uint32_t interface, std::vector<Ranked>& all) {
  if (own.facts.link_layer != peer.facts.link_layer)
    return name(own) + " and " + name(peer) + ": one is InfiniBand and the other Ethernet";
  const std::optional<Pkeys> pkeys = common_pkey(own.facts, peer.facts);
  if (!pkeys.has_value()) return name(own) + " and " + name(peer) + ": no partition key in common";
  if (own.facts.link_layer == LinkLayer::infiniband) return add_infiniband(own, peer, *pkeys, all);
  return add_ethernet(own, peer, *pkeys, interface, all);
}

void reject(Selection& selection, std::string why) {
  auto& all = selection.rejected;
  if (!why.empty() && std::find(all.begin(), all.end(), why) == all.end()) all.push_back(std::move(why));
}

std::vector<const NamedPort*> active(const std::vector<NamedPort>& ports, const char* whose, Selection& selection) {
  std::vector<const NamedPort*> up;
  for (const NamedPort& port : ports) {
    if (port.facts.state == PortState::active)
      up.push_back(&port);
    else
      reject(selection, std::string(whose) + " " + name(port) + " is not active");
  }
  return up;
}

}  // namespace

std::vector<NamedPort> ports_of(const std::vector<DeviceFacts>& devices) {
  std::vector<NamedPort> ports;
  for (const DeviceFacts& device : devices)
    for (const PortFacts& port : device.ports) ports.push_back({device.name, port, device.distance});
  return ports;
}

Selection select(const SelectionInput& input) {
  Selection selection;
  std::vector<Ranked> all;
  const auto own_ports = active(input.own, "own", selection);
  const auto peer_ports = active(input.peer, "the peer's", selection);
  for (const NamedPort* const own : own_ports)
    for (const NamedPort* const peer : peer_ports) reject(selection, add_pair(*own, *peer, input.interface, all));
  // Equal candidates keep the order of the devices.
  std::stable_sort(all.begin(), all.end(), [](const Ranked& a, const Ranked& b) { return a.rank > b.rank; });
  for (Ranked& one : all) selection.candidates.push_back(std::move(one.candidate));
  return selection;
}

std::string explain_none(const SelectionInput& input, const Selection& selection) {
  if (input.own.empty()) return "this host has no RDMA device";
  if (input.peer.empty()) return "the peer's host has no RDMA device";
  std::string text = "no pair of RDMA ports can be used:";
  for (const std::string& why : selection.rejected) text += (&why == &selection.rejected.front() ? " " : "; ") + why;
  return text + " (ibv_devinfo -v shows states, GIDs and partition keys)";
}

std::string to_text(const Candidate& candidate) {
  std::string text = candidate.own.device + " port " + std::to_string(candidate.own.port);
  if (candidate.own.gid_index.has_value())
    text += ", GID " + std::to_string(*candidate.own.gid_index) + " (" + to_text(candidate.own.gid) + ")";
  else
    text += ", LID " + std::to_string(candidate.own.lid);
  text += ", MTU " + std::to_string(candidate.mtu);
  if (candidate.rate_mbit > 0) text += ", " + std::to_string(candidate.rate_mbit / 1'000) + " Gbit/s";
  return text + ": " + candidate.why;
}

}  // namespace seto::rdma
