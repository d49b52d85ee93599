#include "algorithms/site_ring.h"

#include <utility>
#include <vector>

#include "algorithms/hierarchical.h"
#include "algorithms/hierarchy.h"
#include "algorithms/ring.h"

namespace seto {
namespace {

// The built rank and the ranks of other sites that hold the same chunks, in the order of the ring, with what each will own.
struct TeamRing {
  Group group;
  Parts parts;
};

std::vector<TeamRing> rings_of(const Builder& builder, const Tiers& tiers, const Hierarchy& hierarchy) {
  std::vector<TeamRing> rings;
  for (const Team& team : hierarchy.teams(tiers.count() - 1)) {
    std::vector<Rank> ranks;
    Parts parts;
    for (const int member : tiers.ring()) {
      ranks.push_back(team.ranks[static_cast<std::size_t>(member)]);
      parts.push_back(team.part(member));
    }
    rings.push_back({Group(std::move(ranks), static_cast<std::uint8_t>(tiers.count()), builder.rank()), std::move(parts)});
  }
  return rings;
}

// Every rank owns the same number of chunks. All sites carry the same then, up to the difference of their sizes.
std::vector<std::uint32_t> even_chunks(const Tiers& tiers) {
  return std::vector<std::uint32_t>(static_cast<std::size_t>(tiers.size(tiers.count() - 1)), Holders::pieces_for(tiers));
}

}  // namespace

// Ranks of uniform tiers are in one team each.
void build_site_ring_all_reduce(Builder& builder, const Tiers& tiers) {
  const int widest = tiers.count() - 1;
  const Hierarchy hierarchy(builder, tiers, Holders(builder.shape(), tiers, even_chunks(tiers)));
  hierarchy.scatter_sums(widest);
  builder.at_tier(widest);
  const std::vector<TeamRing> rings = rings_of(builder, tiers, hierarchy);
  for (const TeamRing& ring : rings) ring_reduce_scatter(builder, ring.group, ring.parts);
  for (const Range range : hierarchy.owned()) {
    builder.finish(builder.rank(), range);
    builder.round(builder.rank(), range);
  }
  for (const TeamRing& ring : rings) ring_all_gather(builder, ring.group, ring.parts);
  hierarchy.gather_back(widest);
}

std::string refuses_site_ring(const Tiers& tiers) {
  if (tiers.widest() != TierKind::world || tiers.size(tiers.count() - 1) < 3) return "there are fewer than three sites";
  return tiers.uniform() ? "" : "sites or hosts differ in size";
}

std::uint32_t chunks_of_site_ring(const Tiers& tiers) { return Holders::total(tiers, even_chunks(tiers)); }

// Within a site as hierarchical. Between sites as a ring over what the rank holds for its site (ring_all_reduce_load), but the
// first shard goes to a slot in the pass that sums it within the site (1 in place of 2), and results are copied to a slot for the
// others of the site as add_sums counts it.
PlanLoad site_ring_all_reduce_load(const Tiers& tiers) {
  PlanLoad plan;
  const Neighbourhood& around = tiers.neighbourhoods().front();
  const int widest = tiers.count() - 1;
  for (int tier = 0; tier < widest; ++tier)
    add_sums(plan, tiers, around, {tier, 1.0 / around.block[static_cast<std::size_t>(tier)], true});
  const double sites = tiers.size(widest);
  const double held = 1.0 / around.member(widest);
  const double shard = held / sites;
  TierLoad& ring = plan.tiers[static_cast<std::size_t>(widest)];
  ring = {.hops = 2 * (sites - 1), .wire = 2 * (sites - 1) * shard, .coded = (3 * (sites - 1) + 2) * shard};
  ring.messages = 4 * (sites - 1);
  ring.shared = ring.pair = 2 * (sites - 1) / sites;
  ring.round_the_ring = true;
  plan.rank.memory += (2 + 3 * (sites - 2) + 4 + 3 * (sites - 2) + 2) * shard;
  plan.rank.steps += 2 * (sites - 1) + 1;
  plan.rank.peers += 2;
  return plan;
}

}  // namespace seto
