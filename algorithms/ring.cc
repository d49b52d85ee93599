#include "algorithms/ring.h"

#include <algorithm>

#include "algorithms/parts.h"

namespace seto {

void ring_reduce_scatter(Builder& builder, const Group& group, const Parts& parts) {
  for (int hop = 1; hop < group.size(); ++hop) {
    for (const int p : group.touching({hop, hop + 1}))
      for (const Range range : part(parts, p)) builder.reduce(group[p + hop + 1], {group[p + hop], group[p + hop + 1]}, range);
    builder.next_round();
  }
}

void ring_all_gather(Builder& builder, const Group& group, const Parts& parts) {
  for (int hop = 0; hop + 1 < group.size(); ++hop) {
    for (const int p : group.touching({hop, hop + 1}))
      for (const Range range : part(parts, p)) builder.copy(group[p + hop], group[p + hop + 1], range);
    builder.next_round();
  }
}

void build_ring_all_reduce(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  const Parts parts = even_parts(builder.everything(), all.size());
  ring_reduce_scatter(builder, all, parts);
  for (const int own : all.own())
    for (const Range range : part(parts, own)) {
      builder.finish(all[own], range);
      builder.round(all[own], range);
    }
  ring_all_gather(builder, all, parts);
}

void build_ring_reduce_scatter(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  ring_reduce_scatter(builder, all, owned_parts(builder, all));
  for (const int own : all.own()) builder.finish(all[own], builder.part_of(all[own]));
}

void build_ring_all_gather(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  ring_all_gather(builder, all, owned_parts(builder, all));
}

void build_ring_broadcast(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  const int root = builder.shape().root;
  for (int hop = 0; hop + 1 < all.size(); ++hop) {
    builder.copy(all[root + hop], all[root + hop + 1], builder.everything());
    builder.next_round();
  }
}

void build_ring_reduce(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  const int root = builder.shape().root;
  for (int hop = all.size() - 1; hop > 0; --hop) {
    builder.reduce(all[root + hop - 1], {all[root + hop - 1], all[root + hop]}, builder.everything());
    builder.next_round();
  }
  builder.finish(all[root], builder.everything());
}

namespace {

// Members of all blocks of a tier: how often a chain of all ranks enters another one, plus one.
double members_of(const Tiers& tiers, int tier) { return tier == 0 ? tiers.ranks() : tiers.blocks(tier - 1); }

// The peers of the busiest rank in the ring whose messages cross this tier: one or two. A rank of a member with several ranks has
// at least one of them inside, if ranks are numbered one after another; so has a rank of a block of two inside a wider tier.
double peers_across(const Tiers& tiers, int tier) {
  const bool widest = tier + 1 == tiers.count();
  double most = 1;
  for (const Neighbourhood& around : tiers.neighbourhoods()) {
    const bool both_outside = around.member(tier) == 1 || !tiers.consecutive(tier - 1);
    if (both_outside && (widest || around.block[static_cast<std::size_t>(tier)] > 2)) most = 2;
  }
  return most;
}

// The peers of the busiest rank on other nodes: one, if the rank before or the rank after every rank is on its own node.
double peers_elsewhere(const Tiers& tiers) {
  const bool has_nodes = tiers.kind(0) == TierKind::node;
  if (has_nodes && tiers.count() == 1) return 0;
  if (!has_nodes || !tiers.consecutive(0)) return 2;
  const auto& all = tiers.neighbourhoods();
  return std::any_of(all.begin(), all.end(), [](const Neighbourhood& around) { return around.block[0] == 1; }) ? 2 : 1;
}

// `load` is the load of a ring of equal links, with the messages between a rank and one of its peers. A chain crosses this tier
// once for each member that it enters without having left the block on a wider tier. A rank next to such a crossing sends all
// its bytes over it, and a site sends the bytes of each rank whose next one is elsewhere: of one, where its ranks are numbered
// one after another.
PlanLoad load_round_the_ring(const Tiers& tiers, const TierLoad& load, const RankLoad& rank) {
  PlanLoad plan = load_on_widest(tiers, load, rank);
  if (tiers.ranks() == 1) return plan;
  plan.rank.peers = std::min(peers_elsewhere(tiers), ranks_elsewhere(tiers));
  plan.tiers[static_cast<std::size_t>(tiers.count() - 1)].shared = shared_by_members(tiers, [&](std::size_t i) {
    const double bytes = leaving(tiers, i, 1) * load.wire;
    return PortRates{bytes, bytes};
  });
  for (int tier = 0; tier < tiers.count(); ++tier) {
    const double crossings = members_of(tiers, tier) - members_of(tiers, tier + 1);
    const double share = crossings / (tiers.ranks() - 1);
    TierLoad& here = plan.tiers[static_cast<std::size_t>(tier)];
    here.hops = load.hops * share;
    here.relays = load.relays * share;
    here.wire = load.wire;
    const bool has_one_peer = load.relays > 0 && tiers.ranks() == 2;  // the other end of the chain
    here.messages = load.messages * (has_one_peer ? 1 : peers_across(tiers, tier));
    if (load.relays > 0 && !has_one_peer) here.average = (tiers.ranks() - 1.0) / tiers.ranks();  // the ends have one
  }
  return plan;
}

}  // namespace

// Memory, in shards: the first is copied into a slot (2), n - 2 are added to on their way (3 each), the last sum goes to the
// output and a slot (4), n - 2 results go from slot to output and slot (3 each), and the last one to the output (2).
// Coded: n - 1 shards are encoded and decoded, the result is encoded and decoded, and n - 1 results are decoded.
PlanLoad ring_all_reduce_load(const Tiers& tiers) {
  const double n = tiers.ranks();
  return load_round_the_ring(
      tiers, {.hops = 2 * (n - 1), .wire = 2 * (n - 1) / n, .coded = (3 * (n - 1) + 2) / n, .messages = 2 * (n - 1)},
      {.memory = (2 + 3 * (n - 2) + 4 + 3 * (n - 2) + 2) / n,
       .sent = 2 * (n - 1) / n,
       .received = 2 * (n - 1) / n,
       .steps = 2 * (n - 1) + 1});
}

// Memory: the first part is copied into a slot, n - 2 are added to on their way, and the last sum goes to the output.
// Coded: n - 1 parts are encoded, and n - 1 decoded.
PlanLoad ring_reduce_scatter_load(const Tiers& tiers) {
  const double n = tiers.ranks();
  return load_round_the_ring(tiers, {.hops = n - 1, .wire = n - 1, .coded = 2 * (n - 1), .messages = n - 1},
                             {.memory = 2 + 3 * (n - 1), .sent = n - 1, .received = n - 1, .steps = n});
}

// Memory: the own part goes to the output and a slot, n - 2 parts from slot to output and slot, and the last to the output.
PlanLoad ring_all_gather_load(const Tiers& tiers) {
  const double n = tiers.ranks();
  return load_round_the_ring(tiers, {.hops = n - 1, .wire = n - 1, .messages = n - 1},
                             {.memory = 3 * (n - 1) + 2, .sent = n - 1, .received = n - 1, .steps = n});
}

// Memory: a rank in the chain reads a slot and writes its output and the next slot; the last one has no slot to write (2).
PlanLoad ring_broadcast_load(const Tiers& tiers) {
  const double n = tiers.ranks();
  return load_round_the_ring(tiers, {.hops = n - 1, .relays = n - 1, .wire = 1, .messages = 1},
                             {.memory = 3, .sent = 1, .received = std::min(1.0, n - 2), .steps = 1, .path = 3 * (n - 1) + 2});
}

// Memory: a rank in the chain reads a slot and its input and writes the next slot; the first one has no slot to read (2). Coded:
// it decodes the one and encodes the other.
PlanLoad ring_reduce_load(const Tiers& tiers) {
  const double n = tiers.ranks();
  return load_round_the_ring(tiers, {.hops = n - 1, .relays = n - 1, .wire = 1, .coded = std::min(2.0, n - 1), .messages = 1},
                             {.memory = 3, .sent = std::min(1.0, n - 2), .received = 1, .steps = 1, .path = 2 + 3 * (n - 1)});
}

}  // namespace seto
