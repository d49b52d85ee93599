#include "algorithms/direct.h"

#include "algorithms/parts.h"

namespace seto {

void direct_reduce_scatter(Builder& builder, const Group& group, const Parts& parts) {
  for (const int member : group.from_own())
    for (const Range range : part(parts, member)) builder.reduce_all(group, member, range);
  if (group.size() > 1) builder.next_round();
}

void direct_all_gather(Builder& builder, const Group& group, const Parts& parts) {
  for (const int member : group.from_own())
    for (const Range range : part(parts, member)) builder.multicast(group, member, range);
  if (group.size() > 1) builder.next_round();
}

void build_one_shot_all_reduce(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  builder.exchange(all, builder.everything());
  for (const int own : all.own()) builder.finish(all[own], builder.everything());
}

void build_two_shot_all_reduce(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  const Parts parts = even_parts(builder.everything(), all.size());
  direct_reduce_scatter(builder, all, parts);
  for (const int own : all.own())
    for (const Range range : part(parts, own)) {
      builder.finish(all[own], range);
      builder.round(all[own], range);
    }
  direct_all_gather(builder, all, parts);
}

void build_direct_reduce_scatter(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  direct_reduce_scatter(builder, all, owned_parts(builder, all));
  for (const int own : all.own()) builder.finish(all[own], builder.part_of(all[own]));
}

void build_direct_all_gather(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  direct_all_gather(builder, all, owned_parts(builder, all));
}

void build_direct_broadcast(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  builder.multicast(all, builder.shape().root, builder.everything());
}

void build_direct_reduce(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  builder.reduce_all(all, builder.shape().root, builder.everything());
  builder.finish(builder.shape().root, builder.everything());
}

void build_direct_gather(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  const int root = builder.shape().root;
  for (const int member : all.spokes(root)) builder.copy(all[member], all[root], builder.part_of(all[member]));
}

void build_direct_scatter(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  const int root = builder.shape().root;
  for (const int member : all.spokes(root)) builder.copy(all[root], all[member], builder.part_of(all[member]));
}

void build_direct_all_to_all(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  for (int distance = 1; distance < all.size(); ++distance)
    for (const int from : all.touching({0, distance}))
      builder.copy(all[from], all[from + distance], builder.part_of(all[from], all[from + distance]));
}

namespace {

// The messages between a rank, or the root, and each of its peers.
struct PeerMessages {
  double own = 0;     // sent to this peer alone
  double common = 0;  // sent to all peers alike
  double received = 0;
};

// Every rank, or the root, sends `wire` bytes to each of its peers: those within its block of a tier, outside its blocks of the
// tiers before, and all of those of a site share its links. The ports of all tiers work at the same time, so the latency that
// counts is the widest tier's.
PlanLoad load_to_each_peer(const Tiers& tiers, const TierLoad& each, const PeerMessages& messages, const RankLoad& rank) {
  if (tiers.ranks() == 1) return load_on_widest(tiers, {}, {.memory = 2, .steps = 1});  // a copy
  PlanLoad plan = load_on_widest(tiers, each, rank);
  plan.rank.peers = ranks_elsewhere(tiers);
  const bool has_root = each.relays > 0;
  plan.tiers[static_cast<std::size_t>(tiers.count() - 1)].shared = shared_by_members(tiers, [&](std::size_t i) {
    const double inside = tiers.ranks_of_member(i);
    const double outside = tiers.ranks() - inside;
    if (!has_root) return PortRates{inside * outside * each.wire, inside * outside * each.wire};
    const bool to_root = messages.received > 0;  // the root is here: every other rank sends to it, or receives from it
    return to_root ? PortRates{inside * each.wire, outside * each.wire} : PortRates{outside * each.wire, inside * each.wire};
  });
  for (std::size_t tier = 0; tier < static_cast<std::size_t>(tiers.count()); ++tier) {
    int peers = 0;
    for (const Neighbourhood& around : tiers.neighbourhoods())
      peers = std::max(peers, around.block[tier] - around.member(static_cast<int>(tier)));
    plan.tiers[tier].wire = peers * each.wire;
    plan.tiers[tier].messages =
        peers * (messages.own + messages.received) + messages.common * sends_to(tiers, static_cast<int>(tier), peers);
    // Within a node a root that sends to all has one message, as all others have.
    const bool has_most = tiers.kind(static_cast<int>(tier)) != TierKind::node || messages.common == 0;
    if (has_root && has_most) plan.tiers[tier].average = std::min(1.0, 2.0 / tiers.ranks());
  }
  return plan;
}

}  // namespace

// Memory: the own vector is read and written into the slot that all peers read, then n vectors are summed into the output.
// Coded: the own vector is encoded and decoded again, and n - 1 others are decoded.
PlanLoad one_shot_all_reduce_load(const Tiers& tiers) {
  const double n = tiers.ranks();
  return load_to_each_peer(tiers, {.hops = 1, .wire = 1, .coded = n + 1}, {.common = 1, .received = 1},
                           {.memory = 2 + (n + 1), .sent = 1, .received = n - 1, .steps = 2});
}

// Memory: n - 1 shards are copied into slots, n shards are summed into the output and a slot, and n - 1 are copied out of slots.
// Coded: n - 1 shards are encoded, n - 1 decoded, the sum is encoded and decoded, and n - 1 results are decoded.
PlanLoad two_shot_all_reduce_load(const Tiers& tiers) {
  const double n = tiers.ranks();
  return load_to_each_peer(
      tiers, {.hops = 2, .wire = 2 / n, .coded = (3 * (n - 1) + 2) / n}, {.own = 1, .common = 1, .received = 2},
      {.memory = (2 * (n - 1) + (n + 2) + 2 * (n - 1)) / n, .sent = 1, .received = 2 * (n - 1) / n, .steps = 2 * (n - 1) + 1});
}

// Memory: n - 1 parts are copied into slots, and n are summed. Coded: n - 1 parts are encoded, and n - 1 decoded.
PlanLoad direct_reduce_scatter_load(const Tiers& tiers) {
  const double n = tiers.ranks();
  return load_to_each_peer(tiers, {.hops = 1, .wire = 1, .coded = 2 * (n - 1)}, {.own = 1, .received = 1},
                           {.memory = 2 * (n - 1) + (n + 1), .sent = n - 1, .received = n - 1, .steps = n});
}

// Memory: the own part is read and written to the output and to the slot that all peers read, and n - 1 parts are copied.
PlanLoad direct_all_gather_load(const Tiers& tiers) {
  const double n = tiers.ranks();
  return load_to_each_peer(tiers, {.hops = 1, .wire = 1}, {.common = 1, .received = 1},
                           {.memory = 3 + 2 * (n - 1), .sent = 1, .received = n - 1, .steps = n});
}

// Memory: the root reads its input and writes its output and the slot that all peers read. Then a peer copies it (2).
PlanLoad direct_broadcast_load(const Tiers& tiers) {
  return load_to_each_peer(tiers, {.hops = 1, .relays = 1, .wire = 1}, {.common = 1},
                           {.memory = 3, .sent = 1, .steps = 1, .path = 3 + 2});
}

// Memory: when the others have copied theirs into slots (2), the root sums n vectors. Coded: it decodes n - 1 of them.
PlanLoad direct_reduce_load(const Tiers& tiers) {
  const double n = tiers.ranks();
  return load_to_each_peer(tiers, {.hops = 1, .relays = 1, .wire = 1, .coded = n - 1}, {.received = 1},
                           {.memory = n + 1, .received = n - 1, .steps = 1, .path = 2 + (n + 1)});
}

// Memory: the root copies n parts, and another rank one of them.
PlanLoad direct_gather_load(const Tiers& tiers) {
  const double n = tiers.ranks();
  return load_to_each_peer(tiers, {.hops = 1, .relays = 1, .wire = 1}, {.received = 1},
                           {.memory = 2 * n, .received = n - 1, .steps = n, .path = 2 * n + 2});
}

// The same backwards.
PlanLoad direct_scatter_load(const Tiers& tiers) {
  const double n = tiers.ranks();
  return load_to_each_peer(tiers, {.hops = 1, .relays = 1, .wire = 1}, {.own = 1},
                           {.memory = 2 * n, .sent = n - 1, .steps = n, .path = 2 * n + 2});
}

// Memory: n - 1 parts are copied into slots, as many out of them, and the own part from the input to the output.
PlanLoad direct_all_to_all_load(const Tiers& tiers) {
  const double n = tiers.ranks();
  return load_to_each_peer(tiers, {.hops = 1, .wire = 1}, {.own = 1, .received = 1},
                           {.memory = 2 * (n - 1) + 2 * (n - 1) + 2, .sent = n - 1, .received = n - 1, .steps = 2 * (n - 1) + 1});
}

// A barrier has no bytes.
PlanLoad one_shot_barrier_load(const Tiers& tiers) {
  if (tiers.ranks() == 1) return load_on_widest(tiers, {}, {.steps = 2});
  return load_to_each_peer(tiers, {.hops = 1}, {.common = 1, .received = 1}, {.steps = 2});
}

}  // namespace seto
