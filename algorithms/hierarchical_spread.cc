#include "algorithms/hierarchical_spread.h"

#include <algorithm>
#include <map>

#include "algorithms/hierarchical.h"
#include "algorithms/hierarchy.h"
#include "algorithms/shares.h"

namespace seto {
namespace {

// Rates that are not known are taken to be in proportion to the ranks of a member.
std::vector<PortRates> rates_of(const Tiers& tiers, Collective collective) {
  std::vector<PortRates> rates(tiers.rates().begin(), tiers.rates().end());
  rates.resize(static_cast<std::size_t>(tiers.size(tiers.count() - 1)));
  for (std::size_t i = 0; tiers.rates().empty() && i < rates.size(); ++i) {
    const double ranks = tiers.ranks_of_member(i);
    rates[i] = {ranks, ranks};
  }
  if (collective == Collective::reduce)
    for (PortRates& one : rates) std::swap(one.up, one.down);
  return rates;
}

// The number of chunks that each rank of a member owns, by member. Of two members, the root's owns all.
std::vector<std::uint32_t> chunks_of_members(Collective collective, int root_member, const Tiers& tiers) {
  const auto root = static_cast<std::size_t>(root_member);
  const auto members = static_cast<std::size_t>(tiers.size(tiers.count() - 1));
  const std::uint32_t least = Holders::pieces_for(tiers);
  if (members > 2) return chunks_of_shares(shares_from_root(rates_of(tiers, collective), root), tiers, least);
  std::vector<std::uint32_t> chunks(members);
  const auto ranks = static_cast<std::uint32_t>(tiers.ranks_of_member(root));
  chunks[root] = (least * static_cast<std::uint32_t>(tiers.ranks()) / (tiers.uniform() ? 2 : 1) + ranks - 1) / ranks;
  return chunks;
}

std::vector<std::uint32_t> chunks_of_members(const Shape& shape, const Tiers& tiers) {
  return chunks_of_members(shape.collective, tiers.member_of(shape.root), tiers);
}

Hierarchy hierarchy_of(Builder& builder, const Tiers& tiers) {
  return {builder, tiers, Holders(builder.shape(), tiers, chunks_of_members(builder.shape(), tiers))};
}

// The ranges that each rank of the root's member carries for it between the members, as far as the built rank is concerned.
std::map<Rank, std::vector<Range>> carried(const Builder& builder, const Tiers& tiers, const Hierarchy& hierarchy) {
  const Rank root = builder.shape().root;
  std::map<Rank, std::vector<Range>> carried;
  if (tiers.member_of(builder.rank()) != tiers.member_of(root)) return carried;
  for (std::uint32_t chunk = 0; chunk < builder.everything().count; ++chunk) {
    const Rank carrier = hierarchy.holders().holder(root, tiers.count() - 2, chunk);
    if (carrier != root && (builder.rank() == root || builder.rank() == carrier)) append(carried[carrier], chunk);
  }
  return carried;
}

// Calls move(owner, range) for what each member owns of what the built rank's teams hold.
template <class Move>
void for_each_share(const std::vector<Team>& teams, Move move) {
  for (const Team& team : teams)
    for (int owner = 0; owner < team.size(); ++owner)
      for (const Range range : team.part(owner)) move(team, owner, range);
}

}  // namespace

void build_spread_broadcast(Builder& builder, const Tiers& tiers) {
  const Hierarchy hierarchy = hierarchy_of(builder, tiers);
  const Rank root = builder.shape().root;
  const int first = tiers.member_of(root);
  const int widest = tiers.count() - 1;
  for (const auto& [carrier, ranges] : carried(builder, tiers, hierarchy)) {
    builder.at_tier(tiers.between(root, carrier));
    for (const Range range : ranges) builder.copy(root, carrier, range);
  }
  if (tiers.ranks_of_member(static_cast<std::size_t>(first)) > 1) builder.next_round();

  const std::vector<Team>& teams = hierarchy.teams(widest);
  builder.at_tier(widest);
  for_each_share(teams, [&](const Team& team, int owner, Range range) {
    if (owner == first)
      hierarchy.hand_on(team, widest, owner, range);
    else
      builder.copy(team.ranks[static_cast<std::size_t>(first)], team.ranks[static_cast<std::size_t>(owner)], range);
  });
  builder.next_round();
  if (tiers.size(widest) > 2) {
    for_each_share(teams, [&](const Team& team, int owner, Range range) {
      if (owner != first) hierarchy.hand_on(team, widest, owner, range, team.ranks[static_cast<std::size_t>(first)]);
    });
    builder.next_round();
  }
  hierarchy.gather_back(widest, root);
}

// The sum of a share is complete where the root's member adds its own, last where another member owns the share.
void build_spread_reduce(Builder& builder, const Tiers& tiers) {
  const Hierarchy hierarchy = hierarchy_of(builder, tiers);
  const Rank root = builder.shape().root;
  const int first = tiers.member_of(root);
  const int widest = tiers.count() - 1;
  hierarchy.scatter_sums(widest);

  const std::vector<Team>& teams = hierarchy.teams(widest);
  builder.at_tier(widest);
  for_each_share(teams, [&](const Team& team, int owner, Range range) {
    std::vector<Rank> sources = team.ranks;
    if (owner != first) sources.erase(sources.begin() + first);
    builder.reduce(team.ranks[static_cast<std::size_t>(owner)], sources, range);
  });
  builder.next_round();
  if (tiers.size(widest) > 2) {
    for_each_share(teams, [&](const Team& team, int owner, Range range) {
      const Rank here = team.ranks[static_cast<std::size_t>(first)];
      if (owner != first) builder.reduce(here, {here, team.ranks[static_cast<std::size_t>(owner)]}, range);
    });
    builder.next_round();
  }
  for_each_share(teams,
                 [&](const Team& team, int, Range range) { builder.finish(team.ranks[static_cast<std::size_t>(first)], range); });
  for (const auto& [carrier, ranges] : carried(builder, tiers, hierarchy)) {
    builder.at_tier(tiers.between(root, carrier));
    for (const Range range : ranges) builder.copy(carrier, root, range);
  }
}

std::uint32_t chunks_of_spread(const Shape& shape, const Tiers& tiers) {
  return is_tiered(tiers) ? Holders::total(tiers, chunks_of_members(shape, tiers)) : 1;
}

std::uint32_t encodings_of_spread_reduce(const Shape& shape, const Tiers& tiers) {
  const std::vector<std::uint32_t> chunks = chunks_of_members(shape, tiers);
  for (std::size_t i = 0; i < chunks.size(); ++i)
    if (chunks[i] > 0 && static_cast<int>(i) != tiers.member_of(shape.root)) return 2;
  return 1;
}

namespace {

// The bytes that cross the border of each member of the outermost tier, for a root in one of them.
struct Crossing {
  std::size_t first = 0;         // the root's member
  std::vector<double> shares;    // that the members own
  std::vector<PortRates> bytes;  // that each member sends and receives in a broadcast; a reduce exchanges the two
  double others = 0;             // members besides a root's or an owner's

  Crossing(Collective collective, std::size_t root_member, const Tiers& tiers) : first(root_member) {
    const std::vector<std::uint32_t> chunks = chunks_of_members(collective, static_cast<int>(first), tiers);
    const double all = Holders::total(tiers, chunks);
    others = static_cast<double>(chunks.size()) - 2;
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      shares.push_back(static_cast<double>(chunks[i]) * tiers.ranks_of_member(i) / all);
      bytes.push_back({(i == first ? 1.0 : 0.0) + others * shares[i], i == first ? 0.0 : 1.0});
    }
  }

  // The numbers that the busiest rank of a reduce encodes and decodes.
  [[nodiscard]] double coded(const Tiers& tiers) const {
    double most = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) most = std::max(most, (1 + others * shares[i]) / tiers.ranks_of_member(i));
    return most;
  }
};

// Scattering the buffer inside the root's member is one more hop there. What the root has scattered comes back to no rank of it.
void add_inner_tier(PlanLoad& plan, const Tiers& tiers, const Neighbourhood& root, int tier) {
  const int widest = tiers.count() - 1;
  const auto t = static_cast<std::size_t>(tier);
  const double scattered = static_cast<double>(root.block[t] - root.member(tier)) / root.member(widest);
  const double handed_on = (root.members[t] - 1.0) / root.block[t];
  const double hops = tier + 1 == widest ? 2 : 1;
  // Messages: one to each rank that carries a share, and the sums or results of one phase among the members.
  const double messages = root.block[t] - root.member(tier) + 2.0 * (root.members[t] - 1);
  plan.tiers[t] = {.hops = hops, .relays = hops, .wire = scattered + handed_on, .messages = messages};
}

// The load of a rank that is the root, with the hops that all ranks wait for.
PlanLoad load_of_root(Collective collective, const Tiers& tiers, const Neighbourhood& root, const Crossing& crossing) {
  PlanLoad plan;
  const int widest = tiers.count() - 1;
  const double ranks = root.member(widest);
  const double ways = crossing.others > 0 ? 2 : 1;
  TierLoad& border = plan.tiers[static_cast<std::size_t>(widest)];
  // Its own share goes to every other member, and each of theirs to its owner, who does the same.
  const double messages = crossing.others > 0 ? 2 * (crossing.others + 1) : 1;
  border = {.hops = ways, .relays = ways, .messages = tiers.uniform() ? messages : 1.5 * messages};
  for (std::size_t i = 0; i < crossing.bytes.size(); ++i)
    border.wire = std::max(border.wire, std::max(crossing.bytes[i].up, crossing.bytes[i].down) / tiers.ranks_of_member(i));
  if (collective == Collective::reduce) border.coded = crossing.coded(tiers);
  border.shared = shared_by_members(tiers, [&](std::size_t i) {
    const PortRates bytes = crossing.bytes[i];
    return collective == Collective::reduce ? PortRates{bytes.down, bytes.up} : bytes;
  });
  plan.rank.steps = ranks + crossing.others + 1;
  // Broadcast: the root reads its buffer and writes slots, and copies it to its output (4). Reduce: it adds what comes from other
  // members to what it carries itself (3), and copies what others carry (2).
  plan.rank.memory = collective == Collective::reduce ? 2 + 1 / ranks : 4;
  for (int tier = 0; tier < widest; ++tier) {
    const auto t = static_cast<std::size_t>(tier);
    add_inner_tier(plan, tiers, root, tier);
    const double shard = 1.0 / root.block[t];
    const double passed_on = 1.0 / root.member(tier) - shard;
    plan.rank.memory += collective == Collective::reduce ? 2 * passed_on + (root.members[t] + 1) * shard : 2 * shard;
    plan.rank.steps += collective == Collective::reduce ? root.members[t] : 1;
  }
  if (!tiers.uniform()) plan.rank.steps *= 1.5 * widest;  // messages are cut at the borders of holders, on each tier anew
  double hops = 0;
  for (const TierLoad& tier : plan.tiers) hops += tier.hops;
  plan.rank.path = 3 * hops + 2;
  return plan;
}

// The root scatters its buffer over its site. On the widest tier a rank has a peer in each member, or some more where it holds
// more than a rank there.
double peers_of_root(const Tiers& tiers, const Neighbourhood& root) {
  const int widest = tiers.count() - 1;
  double peers = peers_on(tiers, root, widest, root.members[static_cast<std::size_t>(widest)] - 1);
  for (int tier = 0; tier < widest; ++tier)
    if (tiers.kind(tier) != TierKind::node) peers += root.block[static_cast<std::size_t>(tier)] - root.member(tier);
  return std::min(peers, ranks_elsewhere(tiers));
}

// The root is taken to be where it has most to do.
PlanLoad load_of_busiest_root(Collective collective, const Tiers& tiers) {
  PlanLoad busiest;
  std::vector<int> seen;  // sizes of members that were the root's
  for (std::size_t i = 0; i < static_cast<std::size_t>(tiers.size(tiers.count() - 1)); ++i) {
    const int ranks = tiers.ranks_of_member(i);
    if (tiers.rates().empty() && std::find(seen.begin(), seen.end(), ranks) != seen.end()) continue;
    seen.push_back(ranks);
    const Crossing crossing(collective, i, tiers);
    raise_to(busiest, load_of_busiest(tiers, [&](const Tiers&, const Neighbourhood& around) {
               const bool is_here = around.member(tiers.count() - 1) == ranks;
               return is_here ? load_of_root(collective, tiers, around, crossing) : PlanLoad{};
             }));
  }
  for (const Neighbourhood& around : tiers.neighbourhoods())
    busiest.rank.peers = std::max(busiest.rank.peers, peers_of_root(tiers, around));
  return busiest;
}

}  // namespace

PlanLoad spread_broadcast_load(const Tiers& tiers) {
  return is_tiered(tiers) ? load_of_busiest_root(Collective::broadcast, tiers) : PlanLoad{};
}

PlanLoad spread_reduce_load(const Tiers& tiers) {
  return is_tiered(tiers) ? load_of_busiest_root(Collective::reduce, tiers) : PlanLoad{};
}

}  // namespace seto
