#include "algorithms/halving_doubling.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "algorithms/parts.h"

namespace seto {
namespace {

// Parts first … first + count - 1 modulo the number of parts, merged into as few ranges as possible.
std::vector<Range> joined(const Parts& parts, int first, int count) {
  std::vector<Range> ranges;
  for (int i = 0; i < count; ++i)
    for (const Range range : part(parts, first + i)) {
      if (!ranges.empty() && ranges.back().first + ranges.back().count == range.first) {
        ranges.back().count += range.count;
      } else {
        ranges.push_back(range);
      }
    }
  return ranges;
}

}  // namespace

void halving_reduce_scatter(Builder& builder, const Group& group, const Parts& parts) {
  const int n = group.size();
  int reach = 1;
  while (reach < n) reach *= 2;
  for (reach /= 2; reach >= 1; reach /= 2) {
    const int count = std::min(reach, n - reach);
    for (const int to : group.touching({0, -reach}))
      for (const Range range : joined(parts, to, count)) builder.reduce(group[to], {group[to - reach], group[to]}, range);
    builder.next_round();
  }
}

void doubling_all_gather(Builder& builder, const Group& group, const Parts& parts) {
  const int n = group.size();
  for (int reach = 1; reach < n; reach *= 2) {
    const int count = std::min(reach, n - reach);
    for (const int from : group.touching({0, -reach}))
      for (const Range range : joined(parts, from, count)) builder.copy(group[from], group[from - reach], range);
    builder.next_round();
  }
}

void build_halving_doubling_all_reduce(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  const Parts parts = even_parts(builder.everything(), all.size());
  halving_reduce_scatter(builder, all, parts);
  for (const int own : all.own())
    for (const Range range : part(parts, own)) builder.finish(all[own], range);
  doubling_all_gather(builder, all, parts);
}

void build_halving_reduce_scatter(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  halving_reduce_scatter(builder, all, owned_parts(builder, all));
  for (const int own : all.own()) builder.finish(all[own], builder.part_of(all[own]));
}

void build_doubling_all_gather(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  doubling_all_gather(builder, all, owned_parts(builder, all));
}

void build_recursive_doubling_all_reduce(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  const Range whole = builder.everything();
  const int n = all.size();
  int core = 1;
  while (core * 2 <= n) core *= 2;
  const int extra = n - core;  // member i also works for member core + i
  for (const int i : all.touching({0, core}))
    if (i < extra) builder.reduce(all[i], {all[i], all[core + i]}, whole);
  if (extra > 0) builder.next_round();
  for (int distance = 1; distance < core; distance *= 2) {
    for (const int i : all.own())
      if (i < core) builder.exchange(all[i & ~distance], all[i | distance], whole);
    builder.next_round();
  }
  for (const int i : all.own()) {
    if (i < core) builder.finish(all[i], whole);
    if (i < core && extra > 0)
      builder.round(all[i], whole);  // on all members, so that those without a further member get the same bits
  }
  for (const int i : all.touching({0, core}))
    if (i < extra) builder.copy(all[i], all[core + i], whole);
}

namespace {

// The parts of a message are contiguous except where the numbering wraps: at most two steps for each message, and one for the
// smallest.
double steps_of_messages(int ranks) { return 2 * log2_up(ranks) - 1; }

// A rank whose parts wrap sends or receives two messages in every round but the last, and one the other way.
double messages_of_a_phase(int ranks) { return std::max(0.0, 3 * log2_up(ranks) - 1); }

// A rank sends to one rank at each distance, and receives from the one at that distance on the other side.
double peers_of_a_phase(int ranks) { return 2 * log2_up(ranks); }

// TierLoad::shared of a phase, in shards: in the round at a distance each rank sends as many shards to the rank at that distance.
double shared_by_a_phase(const Tiers& tiers) {
  return shared_by_members(tiers, [&](std::size_t i) {
    double shards = 0;
    for (int reach = 1; reach < tiers.ranks(); reach *= 2)
      shards += std::min(reach, tiers.ranks() - reach) * leaving(tiers, i, reach);
    return PortRates{shards, shards};
  });
}

}  // namespace

// Memory, in shards. Scatter: n - 1 are copied into slots and n - 1 that come in are added to. Gather: the last sum goes to a
// slot with its own pass, n - 2 more are copied into slots, and n - 1 out of them.
PlanLoad halving_doubling_all_reduce_load(const Tiers& tiers) {
  const double n = tiers.ranks();
  const double scattered = 2 * (n - 1) + 3 * (n - 1);
  const double gathered = 1 + 2 * (n - 2) + 2 * (n - 1);
  return load_on_widest(tiers,
                        {.hops = 2 * log2_up(tiers.ranks()),
                         .wire = 2 * (n - 1) / n,
                         .shared = 2 * shared_by_a_phase(tiers) / n,
                         .messages = 2 * messages_of_a_phase(tiers.ranks())},
                        {.memory = (scattered + gathered) / n,
                         .sent = 2 * (n - 1) / n,
                         .received = 2 * (n - 1) / n,
                         .steps = 4 * steps_of_messages(tiers.ranks()) - 1,
                         .peers = peers_of_a_phase(tiers.ranks())});
}

// Memory: n - 1 parts are copied into slots, and n - 1 that come in are added to. Coded: the same ones.
PlanLoad halving_reduce_scatter_load(const Tiers& tiers) {
  const double n = tiers.ranks();
  return load_on_widest(tiers,
                        {.hops = log2_up(tiers.ranks()),
                         .wire = n - 1,
                         .shared = shared_by_a_phase(tiers),
                         .coded = 2 * (n - 1),
                         .messages = messages_of_a_phase(tiers.ranks())},
                        {.memory = 2 * (n - 1) + 3 * (n - 1),
                         .sent = n - 1,
                         .received = n - 1,
                         .steps = 2 * steps_of_messages(tiers.ranks()),
                         .peers = peers_of_a_phase(tiers.ranks())});
}

// Memory: the own part goes to the output and a slot, n - 2 more are copied into slots, and n - 1 out of them.
PlanLoad doubling_all_gather_load(const Tiers& tiers) {
  const double n = tiers.ranks();
  return load_on_widest(tiers,
                        {.hops = log2_up(tiers.ranks()),
                         .wire = n - 1,
                         .shared = shared_by_a_phase(tiers),
                         .messages = messages_of_a_phase(tiers.ranks())},
                        {.memory = 3 + 2 * (n - 2) + 2 * (n - 1),
                         .sent = n - 1,
                         .received = n - 1,
                         .steps = 2 * steps_of_messages(tiers.ranks()),
                         .peers = peers_of_a_phase(tiers.ranks())});
}

namespace {

// Rounds of pairs: one for each power of two below n. Where n is none itself, the ranks beyond it take one more at each end.
double pair_rounds(double ranks) { return static_cast<double>(std::bit_width(static_cast<unsigned>(ranks)) - 1); }
bool is_power(double ranks) { return std::has_single_bit(static_cast<unsigned>(ranks)); }

// TierLoad::shared of the last `rounds` of pairs, in vectors. Pairs lie across a border of a site only if their distance reaches
// over it. Ranks beyond the power of two send theirs to a rank at that distance, and get the result from it.
double shared_by_pairs(const Tiers& tiers, double rounds) {
  const double core = std::exp2(pair_rounds(tiers.ranks()));
  return shared_by_members(tiers, [&](std::size_t i) {
    const double inside = tiers.ranks_of_member(i);
    const double most = std::min(inside, tiers.ranks() - inside);
    double vectors = std::min(most, tiers.ranks() - core);
    for (double distance = std::exp2(pair_rounds(tiers.ranks()) - rounds); distance < core; distance *= 2)
      vectors += std::min(most, 2 * tiers.exits_of_member(i) * distance);
    return PortRates{vectors, vectors};
  });
}

// Pairs at a distance below the size of a tier's blocks stay within them, if all have that size, it is a power of two, and their
// ranks are numbered one after another.
PlanLoad load_of_pairs(const Tiers& tiers, const TierLoad& of_a_round, const RankLoad& rank) {
  PlanLoad plan{{}, rank};
  double rounds_elsewhere = 0;  // in each of which a rank may have a peer of its own
  for (int tier = 0, from = 0; tier < tiers.count(); ++tier) {
    const bool widest = tier + 1 == tiers.count();
    const double reached = tiers.neighbourhoods()[0].block[static_cast<std::size_t>(tier)];
    if (!widest && (!tiers.uniform() || !is_power(reached) || !tiers.consecutive(tier)))
      continue;  // a wider tier takes these rounds
    const double rounds = pair_rounds(reached) - from;
    from = static_cast<int>(pair_rounds(reached));
    const double beyond = widest && !is_power(tiers.ranks()) ? 1 : 0;
    if (tiers.kind(tier) != TierKind::node) rounds_elsewhere += rounds + beyond;
    plan.tiers[static_cast<std::size_t>(tier)] = {.hops = rounds + 2 * beyond,
                                                  .wire = (rounds + beyond) * of_a_round.wire,
                                                  .shared = widest ? shared_by_pairs(tiers, rounds) * of_a_round.wire : 0,
                                                  .coded = (rounds + beyond) * of_a_round.coded,
                                                  .messages = 2 * (rounds + beyond)};
  }
  plan.rank.peers = std::min(rounds_elsewhere, ranks_elsewhere(tiers));
  return plan;
}

}  // namespace

// Memory: the first vector is copied into a slot, each round adds one and sends the sum on, the last round writes only the
// output.
// A rank that works for a further one begins with the sum of two vectors (2 more) and writes the result also to a slot (1 more).
// Coded: each round encodes the own vector, and decodes it and the other one.
PlanLoad recursive_doubling_all_reduce_load(const Tiers& tiers) {
  const double rounds = pair_rounds(tiers.ranks());
  const double beyond = is_power(tiers.ranks()) ? 0 : 1;
  return load_of_pairs(tiers, {.wire = 1, .coded = 3},
                       {.memory = 2 + 4 * (rounds - 1) + 3 + 3 * beyond,
                        .sent = rounds + beyond,
                        .received = rounds + beyond,
                        .steps = rounds + 1});
}

// A barrier has no bytes.
PlanLoad recursive_doubling_barrier_load(const Tiers& tiers) {
  return load_of_pairs(tiers, {}, {.steps = pair_rounds(tiers.ranks()) + 1});
}

}  // namespace seto
