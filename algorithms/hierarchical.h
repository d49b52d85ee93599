#pragma once

#include "algorithms/algorithm.h"
#include "algorithms/hierarchy.h"

namespace seto {

// Two or three tiers: sums are scattered inside the node, then inside the site, then exchanged between sites by all ranks at
// once, and gathered in reverse order. Each tier transfers only the shard that the inner tier left. Nodes and sites may differ in
// size: `holders` spreads what crosses a border evenly over the ranks on each side of it.
void build_hierarchical_all_reduce(Builder& builder, const Tiers& tiers);
void build_hierarchical_reduce_scatter(Builder& builder, const Tiers& tiers);
void build_hierarchical_all_gather(Builder& builder, const Tiers& tiers);
void build_hierarchical_broadcast(Builder& builder, const Tiers& tiers);
void build_hierarchical_reduce(Builder& builder, const Tiers& tiers);

// The same with these phases among the hosts of a site.
void build_tiered_all_reduce(Builder& builder, const Tiers& tiers, HostPhases phases);
void build_tiered_reduce_scatter(Builder& builder, const Tiers& tiers, HostPhases phases);
void build_tiered_all_gather(Builder& builder, const Tiers& tiers, HostPhases phases);

// The chunks of the part of each rank, and for an all_reduce those that each rank of a member of the outermost tier owns.
std::uint32_t pieces_of_tiered_parts(const Tiers& tiers, HostPhases phases);
std::vector<std::uint32_t> chunks_of_tiered_sums(const Tiers& tiers, HostPhases phases);

// True if there is more than one tier. Sites of one rank each are one, but need shares where they state their rates.
bool is_tiered(const Tiers& tiers);
// True if the widest tier has two members. Then an all_reduce needs one hop between them, not two.
bool exchanges_sums(const Tiers& tiers);

// The ranks of other nodes with which a rank has messages on this tier, of `others` members in each of which several may share
// what it holds. Where sizes differ, a bound.
double peers_on(const Tiers& tiers, const Neighbourhood& around, int tier, double others);

// Adds the load of a rank with this neighbourhood on a tier of an all_reduce where each member sums a shard of what the tiers
// before have left of the vector, and hands the result on. `goes_on`: wider tiers work on the sums in between.
struct SumsOfTier {
  int tier = 0;
  double shard = 0;
  bool goes_on = false;
};
void add_sums(PlanLoad& plan, const Tiers& tiers, const Neighbourhood& around, const SumsOfTier& sums);

PlanLoad tiered_all_reduce_load(const Tiers& tiers, HostPhases phases);
PlanLoad tiered_reduce_scatter_load(const Tiers& tiers, HostPhases phases);
PlanLoad tiered_all_gather_load(const Tiers& tiers, HostPhases phases);

PlanLoad hierarchical_all_reduce_load(const Tiers& tiers);
PlanLoad hierarchical_reduce_scatter_load(const Tiers& tiers);
PlanLoad hierarchical_all_gather_load(const Tiers& tiers);
PlanLoad hierarchical_broadcast_load(const Tiers& tiers);
PlanLoad hierarchical_reduce_load(const Tiers& tiers);

}  // namespace seto
