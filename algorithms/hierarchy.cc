#include "algorithms/hierarchy.h"

#include <algorithm>
#include <numeric>

#include "algorithms/ring.h"

namespace seto {

// To ask for the holder of a chunk is most of the work of building, so each tier asks only about the chunks that the built rank
// holds on the tier before: what it does not hold there, it does not hold on wider ones.
Hierarchy::Hierarchy(Builder& builder, const Tiers& tiers, Holders holders, HostPhases phases)
    : builder_(builder), tiers_(tiers), holders_(std::move(holders)), phases_(phases) {
  std::vector<std::uint32_t> held(builder_.everything().count);
  std::iota(held.begin(), held.end(), 0);
  for (int tier = 0; tier < tiers_.count(); ++tier) add_tier(tier, held);
}

// Teams are in the order of their first chunks. That is the same for all ranks of a team, because each of them visits all its
// chunks. `held`: the chunks that the built rank holds on the tier before, and then those on this one.
void Hierarchy::add_tier(int tier, std::vector<std::uint32_t>& held) {
  const Rank own = builder_.rank();
  const std::span<const Rank> heads = tiers_.members(tier, tiers_.block_of(own, tier));
  std::vector<Team>& teams = teams_.emplace_back();
  if (heads.size() == 1) return;  // alone in its block, it holds the same chunks for it
  std::vector<Rank> ranks(heads.begin(), heads.end());
  std::vector<std::uint32_t> kept;
  for (const std::uint32_t chunk : held) {
    for (std::size_t i = 0; tier > 0 && i < heads.size(); ++i) ranks[i] = holders_.holder(heads[i], tier - 1, chunk);
    auto team = std::find_if(teams.begin(), teams.end(), [&](const Team& one) { return one.ranks == ranks; });
    if (team == teams.end()) team = teams.insert(team, Team{ranks, Parts(ranks.size()), {}});
    const Rank holder = holders_.holder(own, tier, chunk);
    const auto member = std::find(ranks.begin(), ranks.end(), holder) - ranks.begin();
    append(team->parts[static_cast<std::size_t>(member)], chunk);
    append(team->ranges, chunk);
    if (holder == own) kept.push_back(chunk);
  }
  held = std::move(kept);
}

// Sites with fewer hosts are ready some rounds before the others.
template <class Phase>
void Hierarchy::round_the_hosts(int tier, Phase phase) const {
  const std::uint32_t first = builder_.round();
  for (const Team& team : teams(tier)) {
    builder_.set_round(first);
    phase(builder_, group_of(team.ranks, tier), team.parts);
  }
  builder_.set_round(first + static_cast<std::uint32_t>(tiers_.size(tier)) - 1);
}

void Hierarchy::scatter_sums(int end) const {
  for (int tier = 0; tier < end; ++tier) {
    builder_.at_tier(tier);
    if (goes_round(tiers_, tier, phases_)) {
      round_the_hosts(tier, ring_reduce_scatter);
      continue;
    }
    for (const Team& team : teams(tier)) {
      const Group group = group_of(team.ranks, tier);
      for (const int member : group.from_own())
        for (const Range range : team.part(member)) builder_.reduce_all(group, member, range);
    }
    builder_.next_round();
  }
}

void Hierarchy::hand_on(const Team& team, int tier, int member, Range range, Rank except) const {
  const Rank sender = team.ranks[static_cast<std::size_t>(member)];
  if (!has_one_team(tier)) {
    const Group group = group_of(team.ranks, tier);
    for (const int other : group.spokes(member))
      if (group[other] != except) builder_.copy(sender, group[other], range);
    return;
  }
  std::vector<Rank> ranks = team.ranks;
  if (sender != except) std::erase(ranks, except);
  const auto from = std::find(ranks.begin(), ranks.end(), sender) - ranks.begin();
  builder_.multicast(group_of(std::move(ranks), tier), static_cast<int>(from), range);
}

void Hierarchy::gather_back(int from, Rank except) const {
  for (int tier = from - 1; tier >= 0; --tier) {
    builder_.at_tier(tier);
    if (goes_round(tiers_, tier, phases_)) {
      round_the_hosts(tier, ring_all_gather);
      continue;
    }
    for (const Team& team : teams(tier))
      for (const int member : group_of(team.ranks, tier).from_own())
        for (const Range range : team.part(member)) hand_on(team, tier, member, range, except);
    builder_.next_round();
  }
}

void Hierarchy::exchange_sums() const {
  const int widest = tiers_.count() - 1;
  builder_.at_tier(widest);
  for (const Team& team : teams(widest))
    for (const Range range : team.ranges) {
      builder_.exchange(team.ranks[0], team.ranks[1], range);
      builder_.finish(builder_.rank(), range);
    }
  builder_.next_round();
}

// Cut as the messages of the widest tier are, so that a rounded value is sent in the pass that rounds it.
std::vector<Range> Hierarchy::owned() const {
  std::vector<Range> ranges;
  for (const Team& team : teams(tiers_.count() - 1)) {
    const auto own = std::find(team.ranks.begin(), team.ranks.end(), builder_.rank()) - team.ranks.begin();
    const std::vector<Range>& parts = team.part(static_cast<int>(own));
    ranges.insert(ranges.end(), parts.begin(), parts.end());
  }
  return ranges;
}

}  // namespace seto
