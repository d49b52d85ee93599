#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "src/topology/tiers.h"

namespace seto {

// The work of a plan on the links of one tier. Bytes are counted in parts: the bytes of one part of the call count 1.
struct TierLoad {
  double hops = 0;    // latencies that are paid one after another
  double relays = 0;  // ranks that pass a slice on one after another; 0: all ranks are busy at the same time
  double wire = 0;    // bytes that cross the busiest port of a rank, in the busier direction
  // On the tier of sites: bytes that all ranks of a site together send over its uplink or receive over its downlink, of the
  // busiest one. Where the rates of sites are known, it is stretched as if all had the rate of the slowest one.
  double shared = 0;
  // The part of it that one site sends to another one at most; 0: not known, and `shared` stands for it.
  double pair = 0;
  bool round_the_ring = false;  // its messages between sites cross only the links of the ring of sites
  double coded = 0;             // numbers that the busiest rank encodes and decodes, where messages of this tier are coded
  // For each slice: messages that the busiest rank sends and receives, both counted. Each hop contains a send and a receive.
  double messages = 0;
  // Messages of an average rank over those of the busiest one. Where one rank has most of the work, the others leave it the core
  // that they share.
  double average = 1;
};

// The work of the busiest rank of a plan.
struct RankLoad {
  // Bytes read and written, in parts: each operand of each step once. A copy counts 2, the sum of k vectors in one pass k + 1.
  double memory = 0;
  // The part of `memory` that is written into messages, once for all receivers of a node, or read from them. Within a node
  // another core reads or has written these bytes. Left at 0 by algorithms that need several tiers.
  double sent = 0;
  double received = 0;
  double steps = 0;  // for each slice
  // The reads and writes of one slice by all ranks that it passes one after another, if that is more than `memory`.
  double path = 0;
  // Ranks of other nodes with which the rank that has most of them exchanges messages, or a bound that is a few larger. TCP opens
  // a connection to each of them.
  double peers = 0;
};

// The load of a whole plan, out of place, after lowering.
struct PlanLoad {
  std::array<TierLoad, kMostTiers> tiers;
  RankLoad rank;
  bool saves_peers = false;  // takes more hops than another plan with the same bytes, so that ranks have few peers

  // A slice passes through one rank after another, so that more slices shorten the call.
  [[nodiscard]] bool passes_on() const {
    return std::any_of(tiers.begin(), tiers.end(), [](const TierLoad& tier) { return tier.relays > 0; });
  }
};

// The cost of an algorithm in closed form: a pure function that takes a time proportional to the number of tiers, and of the
// different neighbourhoods of ranks on them, and of the sites where their shares differ. Choice turns the load into seconds.
// Ranks of one node are assumed to be numbered one after another.
using CostForm = PlanLoad (*)(const Tiers& tiers);

// Ranks on other nodes than the rank that has most of them.
inline double ranks_elsewhere(const Tiers& tiers) {
  double most = 0;
  for (const Neighbourhood& around : tiers.neighbourhoods())
    most = std::max<double>(most, tiers.ranks() - (tiers.kind(0) == TierKind::node ? around.block[0] : 1));
  return most;
}

// The load of an algorithm that does not look at tiers: every hop may cross the widest tier, and so may all bytes of a port.
inline PlanLoad load_on_widest(const Tiers& tiers, const TierLoad& load, const RankLoad& rank) {
  PlanLoad plan{{}, rank};
  plan.rank.peers = std::min(rank.peers, ranks_elsewhere(tiers));
  plan.tiers[static_cast<std::size_t>(tiers.count() - 1)] = load;
  return plan;
}

// Raises each number of a load to that of another one.
inline void raise_to(PlanLoad& most, const PlanLoad& other) {
  for (std::size_t tier = 0; tier < kMostTiers; ++tier) {
    most.tiers[tier].round_the_ring = most.tiers[tier].round_the_ring || other.tiers[tier].round_the_ring;
    for (double TierLoad::*number : {&TierLoad::hops, &TierLoad::relays, &TierLoad::wire, &TierLoad::shared, &TierLoad::pair,
                                     &TierLoad::coded, &TierLoad::messages})
      most.tiers[tier].*number = std::max(most.tiers[tier].*number, other.tiers[tier].*number);
  }
  most.saves_peers = most.saves_peers || other.saves_peers;
  for (double RankLoad::*number :
       {&RankLoad::memory, &RankLoad::sent, &RankLoad::received, &RankLoad::steps, &RankLoad::path, &RankLoad::peers})
    most.rank.*number = std::max(most.rank.*number, other.rank.*number);
}

// The load of the busiest rank, in each respect: form(tiers, around) is that of a rank with this neighbourhood.
template <class Form>
PlanLoad load_of_busiest(const Tiers& tiers, Form form) {
  PlanLoad busiest;
  for (const Neighbourhood& around : tiers.neighbourhoods()) raise_to(busiest, form(tiers, around));
  return busiest;
}

// TierLoad::shared of the widest tier: `bytes_of(i)` is what all ranks of member i send to the others and receive from them, in
// parts. Without known rates all links count alike. 0: the widest tier is not that of sites.
template <class BytesOf>
double shared_by_members(const Tiers& tiers, BytesOf bytes_of) {
  if (tiers.widest() != TierKind::world) return 0;
  const bool are_known = !tiers.rates().empty();
  double most = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(tiers.size(tiers.count() - 1)); ++i) {
    const PortRates bytes = bytes_of(i);
    const PortRates rates = are_known ? tiers.rates()[i] : PortRates{1, 1};
    most = std::max({most, bytes.up / rates.up, bytes.down / rates.down});
  }
  return are_known ? most * tiers.slowest_rate() : most;
}

// Messages of a round that leave member i of the widest tier, if every rank sends one to the rank `distance` beyond it, in a ring
// of all ranks. Each step along the ring leaves the member at its exits only.
inline double leaving(const Tiers& tiers, std::size_t i, double distance) {
  const double ranks = tiers.ranks();
  const double inside = tiers.ranks_of_member(i);
  return std::min({inside, ranks - inside, tiers.exits_of_member(i) * std::min(distance, ranks - distance)});
}

// TierLoad::average of a collective in which each rank but the root receives once, or sends once, in each block of a tier, and
// the busiest rank has `messages`. Within a node all ranks read the slot of one message.
inline double average_of_rooted(const Tiers& tiers, int tier, double messages) {
  if (tiers.kind(tier) == TierKind::node || messages <= 0) return 1;
  const double blocks = tiers.blocks(tier);
  return std::min(1.0, 2 * (blocks * tiers.size(tier) - blocks) / (tiers.ranks() * messages));
}

// Messages that a rank sends so that `receivers` ranks of one block of a tier get the same bytes. Within a node they all read one
// slot.
inline double sends_to(const Tiers& tiers, int tier, double receivers) {
  return tiers.kind(tier) == TierKind::node ? std::min(1.0, receivers) : receivers;
}

// The number of rounds in which a distance that doubles reaches every rank.
inline double log2_up(int ranks) { return static_cast<double>(std::bit_width(static_cast<unsigned>(ranks) - 1)); }

}  // namespace seto
