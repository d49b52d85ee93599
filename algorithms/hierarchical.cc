#include "algorithms/hierarchical.h"

#include <algorithm>
#include <cmath>

namespace seto {
namespace {

Hierarchy hierarchy_of(Builder& builder, const Tiers& tiers, HostPhases phases = HostPhases::direct) {
  const Shape& shape = builder.shape();
  if (shape.collective != Collective::all_reduce) return {builder, tiers, Holders(shape, tiers), phases};
  return {builder, tiers, Holders(shape, tiers, chunks_of_tiered_sums(tiers, phases)), phases};
}

}  // namespace

bool is_tiered(const Tiers& tiers) { return tiers.count() > 1 || tiers.rates().size() > 2; }

std::uint32_t pieces_of_tiered_parts(const Tiers& tiers, HostPhases phases) {
  return phases == HostPhases::ring ? 1 : Holders::pieces_for(tiers);
}

// A chunk passes each link of a ring of hosts twice at most. So ranks that have no more chunks than there are ranks need no more
// streams between two of them than transports have, however the chunks of hosts of different sizes are scattered.
std::vector<std::uint32_t> chunks_of_tiered_sums(const Tiers& tiers, HostPhases phases) {
  std::vector<std::uint32_t> chunks = Holders::chunks_of_sums(tiers);
  if (phases == HostPhases::ring && !tiers.uniform() && Holders::total(tiers, chunks) > static_cast<std::uint32_t>(tiers.ranks()))
    chunks.assign(chunks.size(), 1);
  return chunks;
}

bool exchanges_sums(const Tiers& tiers) { return tiers.size(tiers.count() - 1) == 2; }

void build_tiered_all_reduce(Builder& builder, const Tiers& tiers, HostPhases phases) {
  const Hierarchy hierarchy = hierarchy_of(builder, tiers, phases);
  if (exchanges_sums(tiers)) {
    hierarchy.scatter_sums(tiers.count() - 1);
    hierarchy.exchange_sums();
    return hierarchy.gather_back(tiers.count() - 1);
  }
  hierarchy.scatter_sums(tiers.count());
  for (const Range range : hierarchy.owned()) {
    builder.finish(builder.rank(), range);
    builder.round(builder.rank(), range);
  }
  hierarchy.gather_back(tiers.count());
}

void build_tiered_reduce_scatter(Builder& builder, const Tiers& tiers, HostPhases phases) {
  const Hierarchy hierarchy = hierarchy_of(builder, tiers, phases);
  hierarchy.scatter_sums(tiers.count());
  for (const Range range : hierarchy.owned()) builder.finish(builder.rank(), range);
}

void build_tiered_all_gather(Builder& builder, const Tiers& tiers, HostPhases phases) {
  hierarchy_of(builder, tiers, phases).gather_back(tiers.count());
}

void build_hierarchical_all_reduce(Builder& builder, const Tiers& tiers) {
  build_tiered_all_reduce(builder, tiers, HostPhases::direct);
}

void build_hierarchical_reduce_scatter(Builder& builder, const Tiers& tiers) {
  build_tiered_reduce_scatter(builder, tiers, HostPhases::direct);
}

void build_hierarchical_all_gather(Builder& builder, const Tiers& tiers) {
  build_tiered_all_gather(builder, tiers, HostPhases::direct);
}

void build_hierarchical_broadcast(Builder& builder, const Tiers& tiers) {
  hierarchy_of(builder, tiers).gather_back(tiers.count());
}

void build_hierarchical_reduce(Builder& builder, const Tiers& tiers) {
  hierarchy_of(builder, tiers).scatter_sums(tiers.count());
  builder.finish(builder.shape().root, builder.everything());
}

namespace {

// Copies of a message in slots beyond the first: ranks that are no multicast group get one each.
double further_copies(const Tiers& tiers, int tier, double others) {
  return tier == 0 || tiers.uniform() ? 0 : std::max(0.0, others - 1);
}

// Steps beyond the first that add the parts of this number of members. Each of them reads the sum that the one before has stored.
double further_folds(double members) { return members <= kMostSources ? 0 : std::ceil((members - 1) / (kMostSources - 1)) - 1; }

// How many ranks of the largest member share what this rank holds for its own, beyond one. Each has messages of its own.
double further_teams(const Tiers& tiers, const Neighbourhood& around, int tier) {
  double largest = 1;
  for (const Neighbourhood& one : tiers.neighbourhoods()) largest = std::max<double>(largest, one.member(tier));
  return std::max(0.0, std::ceil(largest / around.member(tier)) - 1);
}

// In a ring each rank has the one before it and the one after it.
double others_of_phase(double others, bool round) { return round ? std::min(2.0, others) : others; }

// Messages that a rank sends and receives on a tier of all_reduce: parts to be summed, then results, which all others get alike.
double messages_of_all_reduce(const Tiers& tiers, int tier, double others) {
  return 2 * others + sends_to(tiers, tier, others) + others;
}

// Messages that lie on the border of two holders are cut, on each tier anew. The factor was counted over random tiers.
double with_cuts(const Tiers& tiers, double steps) { return tiers.uniform() ? steps : 1.5 * steps; }
double with_cuts_on_each_tier(const Tiers& tiers, double steps) {
  return with_cuts(tiers, steps) * (tiers.uniform() ? 1 : tiers.count() - 1);
}

// The part of the vector that a rank with this neighbourhood owns at most.
double owned_of_sums(const Tiers& tiers, const Neighbourhood& around, HostPhases phases) {
  const auto widest = static_cast<std::size_t>(tiers.count() - 1);
  if (tiers.rates().empty()) return 1.0 / around.block[widest];
  const std::vector<std::uint32_t> chunks = chunks_of_tiered_sums(tiers, phases);
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i)
    if (tiers.ranks_of_member(i) == around.member(tiers.count() - 1)) most = std::max(most, chunks[i]);
  return static_cast<double>(most) / Holders::total(tiers, chunks);
}

double members_of_the_widest(const Tiers& tiers) { return tiers.size(tiers.count() - 1); }

// The most that one member sends to another one in an all_reduce: the sum of what the other owns, and the result of its own.
double pair_of_sums(const Tiers& tiers, HostPhases phases) {
  if (tiers.widest() != TierKind::world) return 0;
  if (exchanges_sums(tiers)) return 1;
  const std::vector<std::uint32_t> chunks = chunks_of_tiered_sums(tiers, phases);
  double most = 0;
  double second = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const double own = chunks[i] * static_cast<double>(tiers.ranks_of_member(i)) / Holders::total(tiers, chunks);
    second = std::max(second, std::min(most, own));
    most = std::max(most, own);
  }
  return most + second;
}

// The parts of the largest member: what it sends to each other one in an all_gather, and receives in a reduce_scatter.
double pair_of_parts(const Tiers& tiers) {
  if (tiers.widest() != TierKind::world) return 0;
  double most = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(tiers.size(tiers.count() - 1)); ++i)
    most = std::max<double>(most, tiers.ranks_of_member(i));
  return most;
}

// An owner exchanges its share with each other member, besides what every member sends and receives once.
double shared_sums(const Tiers& tiers, HostPhases phases) {
  if (tiers.widest() != TierKind::world) return 0;
  const std::vector<std::uint32_t> chunks = chunks_of_tiered_sums(tiers, phases);
  const double all = Holders::total(tiers, chunks);
  return shared_by_members(tiers, [&](std::size_t i) {
    const double bytes = 1 + (static_cast<double>(chunks.size()) - 2) * chunks[i] * tiers.ranks_of_member(i) / all;
    return PortRates{bytes, bytes};
  });
}

}  // namespace

// Where the borders of holders differ, a rank has one more in each member for each tier further in, where its range is cut anew.
double peers_on(const Tiers& tiers, const Neighbourhood& around, int tier, double others) {
  if (tiers.kind(tier) == TierKind::node) return 0;
  return others * (1 + further_teams(tiers, around, tier) + (tiers.uniform() ? 0 : tier));
}

void add_sums(PlanLoad& plan, const Tiers& tiers, const Neighbourhood& around, const SumsOfTier& sums) {
  const auto t = static_cast<std::size_t>(sums.tier);
  const double others = around.members[t] - 1;
  const double shard = sums.shard;
  const double passed_on = 1.0 / around.member(sums.tier) - shard;
  const double further = further_teams(tiers, around, sums.tier);
  plan.tiers[t] = {.hops = 2,
                   .wire = passed_on + others * shard,
                   .coded = 2 * passed_on + others * shard + 2 * shard,
                   .messages = with_cuts(tiers, messages_of_all_reduce(tiers, sums.tier, others) * (1 + further))};
  const bool is_widest = sums.tier + 1 == tiers.count();
  plan.rank.memory += 2 * passed_on + (others + 2 + (is_widest ? 1 : 0) + (sums.goes_on ? 2 : 0)) * shard + 2 * passed_on;
  const double folds = further_folds(others + 1);
  plan.rank.memory += (further_copies(tiers, sums.tier, others) + 2 * folds) * shard;
  plan.rank.steps += 2 * others + 1 + folds + (sums.goes_on ? 1 : 0) + 3 * further;
  plan.rank.peers += peers_on(tiers, around, sums.tier, others);
}

namespace {

// The same round a ring of hosts, in which a rank sends on all that it does not own. Memory: the first part goes to a slot, in
// the pass that sums it within the node, if there is one (else 2). All that comes in is added to on its way (3). The last sum is
// kept for the next tier and copied to a slot when its result has come back (2), or goes to a slot at once (1). Results of others
// go to the output (2), and all but the last one to the next slot, in the same pass (1). Where there is a node, one of them is
// copied for it in a pass of its own (2).
void add_sums_of_ring(PlanLoad& plan, const Tiers& tiers, const Neighbourhood& around, const SumsOfTier& sums, bool is_sum) {
  const auto t = static_cast<std::size_t>(sums.tier);
  const double others = around.members[t] - 1;
  const double teams = 1 + further_teams(tiers, around, sums.tier);
  const double passed_on = 1.0 / around.member(sums.tier) - sums.shard;
  plan.tiers[t] = {.hops = 2 * others, .wire = 2 * passed_on, .messages = with_cuts(tiers, 4 * others * teams)};
  const bool is_widest = sums.tier + 1 == tiers.count();
  plan.rank.memory += (is_sum ? 0 : 2) * sums.shard + 3 * passed_on + (is_widest ? 1 : 0) * sums.shard;
  plan.rank.memory += (sums.goes_on ? 2 : 0) * sums.shard + 3 * passed_on - sums.shard + (is_sum ? 2 : 0) * sums.shard;
  plan.rank.steps += (2 * others + 1 + (sums.goes_on ? 1 : 0)) * teams;
  plan.rank.peers += peers_on(tiers, around, sums.tier, others_of_phase(others, true));
}

// The load of a rank with this neighbourhood. Each tier works on what the tiers before it have left of the vector. Memory: what
// other members will sum is copied into slots, the own shard is summed from m members, and the results of the others are copied
// out of slots. The sum of the widest tier goes to the output and a slot (m + 2). Narrower ones keep it for the next tier (m +
// 1), and copy it to a slot when it has come back (2).
//
// Two members of the widest tier exchange: the same bytes as a shard sent and its result returned, but one latency and one
// encoding in place of two. Memory: the sum of the tier before goes also to a slot (1), or the own vector is copied there (2).
// The sum of two is written (3), and also to a slot of the tier before (1). Where sizes differ, a sum is cut for several ranks,
// and both copies have passes of their own (2 each). Coded: one vector is encoded and decoded, the other decoded.
PlanLoad all_reduce_load_of(const Tiers& tiers, const Neighbourhood& around, HostPhases phases) {
  PlanLoad plan;
  const int widest = tiers.count() - 1;
  bool is_sum = false;  // the tiers before have summed what this one works on
  for (int tier = 0; tier <= widest; ++tier) {
    const auto t = static_cast<std::size_t>(tier);
    const double others = around.members[t] - 1;
    if (others == 0) continue;
    const double held = 1.0 / around.member(tier);
    const double shard = tier == widest ? owned_of_sums(tiers, around, phases) : 1.0 / around.block[t];
    if (tier == widest && exchanges_sums(tiers)) {
      const double teams = 1 + further_teams(tiers, around, tier);
      plan.tiers[t] = {.hops = 1, .wire = held, .coded = 3 * held, .messages = with_cuts(tiers, 2 * teams)};
      const double copies = tiers.uniform() ? 2 : 4;
      plan.rank.memory += (3 + (is_sum ? copies : 2)) * held;
      plan.rank.steps += (is_sum ? 1 : 2) * teams;
      plan.rank.peers += peers_on(tiers, around, tier, others);
      continue;
    }
    const SumsOfTier sums{tier, shard, tier < widest && !(tier + 1 == widest && exchanges_sums(tiers))};
    if (goes_round(tiers, tier, phases)) {
      add_sums_of_ring(plan, tiers, around, sums, is_sum);
    } else {
      add_sums(plan, tiers, around, sums);
    }
    is_sum = true;
  }
  plan.rank.steps = with_cuts_on_each_tier(tiers, plan.rank.steps);
  return plan;
}

// Memory: the innermost tier copies parts into slots, and each tier sums the parts of its members into slots of the next one.
// Where sizes differ, the sums are cut for several ranks and copied there (2).
// Coded: the widest tier encodes what it sends and decodes what comes in.
PlanLoad reduce_scatter_load_of(const Tiers& tiers, const Neighbourhood& around, HostPhases phases) {
  PlanLoad plan;
  bool is_sum = false;
  for (int tier = 0; tier < tiers.count(); ++tier) {
    const auto t = static_cast<std::size_t>(tier);
    const double members = around.members[t];
    if (members == 1) continue;
    const double kept = static_cast<double>(tiers.ranks()) / around.block[t];
    const double sent = static_cast<double>(tiers.ranks()) / around.member(tier) - kept;
    const double come_in = (members - 1) * kept;
    const bool round = goes_round(tiers, tier, phases);
    plan.rank.peers += peers_on(tiers, around, tier, others_of_phase(members - 1, round));
    if (round) {  // what comes in is added to and sent on, and a part is complete after the last hop
      plan.tiers[t] = {.hops = members - 1, .wire = sent, .messages = with_cuts(tiers, 2 * sent)};
      plan.rank.memory += (is_sum && tiers.uniform() ? 0 : 2 * kept) + 3 * sent;
      plan.rank.steps += with_cuts(tiers, (is_sum ? 0 : kept) + sent);
      is_sum = true;
      continue;
    }
    plan.tiers[t] = {
        .hops = 1, .wire = std::max(sent, come_in), .coded = sent + come_in, .messages = with_cuts(tiers, sent + come_in)};
    const double folds = further_folds(members);
    plan.rank.memory += (is_sum && tiers.uniform() ? 0 : 2 * sent) + (members + 1 + 2 * folds) * kept;
    plan.rank.steps += with_cuts(tiers, (is_sum ? 0 : sent) + (1 + folds) * kept);
    is_sum = true;
  }
  return plan;
}

// Each tier gathers what the wider ones have gathered already. Memory: the own part is read and written to the output and a slot,
// and copied to a slot for each further tier. A part that comes in goes to the output (2), in the same pass to a slot of the next
// tier (1), and to the slots of further ones with a pass each (2). Where sizes differ, parts are cut for several ranks, and all
// these copies have passes of their own.
PlanLoad all_gather_load_of(const Tiers& tiers, const Neighbourhood& around, HostPhases phases) {
  PlanLoad plan;
  double narrower = 0;  // tiers that pass on what comes in
  plan.rank.memory = tiers.uniform() ? 1 : 2;
  for (int tier = 0; tier < tiers.count(); ++tier) {
    const auto t = static_cast<std::size_t>(tier);
    const double others = around.members[t] - 1;
    if (others == 0) continue;
    const double held = static_cast<double>(tiers.ranks()) / around.block[t];
    const double come_in = static_cast<double>(tiers.ranks()) / around.member(tier) - held;
    const double further = std::max(0.0, narrower - 1);
    const double copies = tiers.uniform() ? (narrower > 0 ? 1 : 0) + 2 * further : 2 * narrower;
    const bool round = goes_round(tiers, tier, phases);
    plan.rank.peers += peers_on(tiers, around, tier, others_of_phase(others, round));
    if (round) {  // all parts but those that the next rank had first are sent on
      plan.tiers[t] = {.hops = others, .wire = come_in, .messages = with_cuts(tiers, 2 * come_in)};
      const double sent_on = come_in - held;
      plan.rank.memory += 2 + come_in * (2 + copies) + (narrower > 0 ? 2 : 1) * sent_on;
      plan.rank.steps += with_cuts(tiers, 1 + come_in * (1 + further) + (narrower > 0 ? sent_on : 0));
      ++narrower;
      continue;
    }
    plan.tiers[t] = {.hops = 1,
                     .wire = std::max(others * held, come_in),
                     .messages = with_cuts(tiers, held * sends_to(tiers, tier, others) + come_in)};
    plan.rank.memory += 2 + come_in * (2 + copies) + further_copies(tiers, tier, others) * held;
    plan.rank.steps += with_cuts(tiers, 1 + come_in * (1 + further));
    ++narrower;
  }
  return plan;
}

// The load of the busiest rank, by the load of a rank with a neighbourhood.
PlanLoad load_of_all(const Tiers& tiers, HostPhases phases, PlanLoad (*of)(const Tiers&, const Neighbourhood&, HostPhases)) {
  PlanLoad plan = load_of_busiest(tiers, [&](const Tiers&, const Neighbourhood& around) { return of(tiers, around, phases); });
  plan.rank.peers = std::min(plan.rank.peers, ranks_elsewhere(tiers));
  plan.saves_peers = phases == HostPhases::ring;
  return plan;
}

}  // namespace

PlanLoad tiered_all_reduce_load(const Tiers& tiers, HostPhases phases) {
  PlanLoad plan = load_of_all(tiers, phases, all_reduce_load_of);
  TierLoad& widest = plan.tiers[static_cast<std::size_t>(tiers.count() - 1)];
  widest.shared = shared_sums(tiers, phases);
  widest.pair = pair_of_sums(tiers, phases);
  return plan;
}

// A member sends the sums of all parts that others own, and receives one of each own part from each other member.
PlanLoad tiered_reduce_scatter_load(const Tiers& tiers, HostPhases phases) {
  PlanLoad plan = load_of_all(tiers, phases, reduce_scatter_load_of);
  plan.tiers[static_cast<std::size_t>(tiers.count() - 1)].pair = pair_of_parts(tiers);
  plan.tiers[static_cast<std::size_t>(tiers.count() - 1)].shared = shared_by_members(tiers, [&](std::size_t i) {
    const double own = tiers.ranks_of_member(i);
    return PortRates{tiers.ranks() - own, (members_of_the_widest(tiers) - 1) * own};
  });
  return plan;
}

PlanLoad tiered_all_gather_load(const Tiers& tiers, HostPhases phases) {
  PlanLoad plan = load_of_all(tiers, phases, all_gather_load_of);
  plan.tiers[static_cast<std::size_t>(tiers.count() - 1)].pair = pair_of_parts(tiers);
  plan.tiers[static_cast<std::size_t>(tiers.count() - 1)].shared = shared_by_members(tiers, [&](std::size_t i) {
    const double own = tiers.ranks_of_member(i);
    return PortRates{(members_of_the_widest(tiers) - 1) * own, tiers.ranks() - own};
  });
  return plan;
}

PlanLoad hierarchical_all_reduce_load(const Tiers& tiers) { return tiered_all_reduce_load(tiers, HostPhases::direct); }
PlanLoad hierarchical_reduce_scatter_load(const Tiers& tiers) { return tiered_reduce_scatter_load(tiers, HostPhases::direct); }
PlanLoad hierarchical_all_gather_load(const Tiers& tiers) { return tiered_all_gather_load(tiers, HostPhases::direct); }

// The root is taken to be in the largest block of each tier.
// Memory: the root reads its input and writes its output and a slot, and copies to a slot for each further tier. A slice passes
// the root and a rank of each narrower tier (3 each), and the last one has no slot to write (2). Wire: it sends
// to each member of its groups.
PlanLoad hierarchical_broadcast_load(const Tiers& tiers) {
  PlanLoad plan;
  plan.rank = {
      .memory = 3 + 2 * (tiers.count() - 1.0), .steps = static_cast<double>(tiers.count()), .path = 3.0 * tiers.count() + 2};
  for (int tier = 0; tier < tiers.count(); ++tier) {
    const double others = tiers.size(tier) - 1;
    plan.tiers[static_cast<std::size_t>(tier)] = {.hops = 1,
                                                  .relays = 1,
                                                  .wire = others,
                                                  .messages = sends_to(tiers, tier, others),
                                                  .average = average_of_rooted(tiers, tier, sends_to(tiers, tier, others))};
    plan.rank.memory += further_copies(tiers, tier, others);
    if (tiers.kind(tier) != TierKind::node) plan.rank.peers += others;
  }
  plan.tiers[static_cast<std::size_t>(tiers.count() - 1)].shared = shared_by_members(tiers, [&](std::size_t) {
    return PortRates{members_of_the_widest(tiers) - 1, 1};
  });
  return plan;
}

// Memory: at each tier the root sums the vectors of its m members (m + 1), after another rank has copied one into a slot (2).
// Coded: on the widest tier it decodes all but its own.
PlanLoad hierarchical_reduce_load(const Tiers& tiers) {
  PlanLoad plan;
  plan.rank = {.memory = 0, .steps = static_cast<double>(tiers.count()), .path = 2};
  for (int tier = 0; tier < tiers.count(); ++tier) {
    const double others = tiers.size(tier) - 1;
    plan.tiers[static_cast<std::size_t>(tier)] = {.hops = 1,
                                                  .relays = 1,
                                                  .wire = others,
                                                  .coded = others,
                                                  .messages = others,
                                                  .average = average_of_rooted(tiers, tier, others)};
    const double folds = further_folds(others + 1);
    plan.rank.memory += others + 2 + 2 * folds;
    plan.rank.path += others + 2 + 2 * folds;
    plan.rank.steps += folds;
    if (tiers.kind(tier) != TierKind::node) plan.rank.peers += others;
  }
  plan.tiers[static_cast<std::size_t>(tiers.count() - 1)].shared = shared_by_members(tiers, [&](std::size_t) {
    return PortRates{1, members_of_the_widest(tiers) - 1};
  });
  return plan;
}

}  // namespace seto
