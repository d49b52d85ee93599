#pragma once

#include "algorithms/algorithm.h"

namespace seto {

// Every member sends to every other member: one hop, and one pass over all n contributions in the group's order.
void direct_reduce_scatter(Builder& builder, const Group& group, const Parts& parts);
void direct_all_gather(Builder& builder, const Group& group, const Parts& parts);

void build_one_shot_all_reduce(Builder& builder, const Tiers& tiers);  // every vector to every rank: one hop, n times the bytes
void build_two_shot_all_reduce(Builder& builder, const Tiers& tiers);  // shards, then results: two hops, fewest bytes
void build_direct_reduce_scatter(Builder& builder, const Tiers& tiers);
void build_direct_all_gather(Builder& builder, const Tiers& tiers);
void build_direct_broadcast(Builder& builder, const Tiers& tiers);
void build_direct_reduce(Builder& builder, const Tiers& tiers);
void build_direct_gather(Builder& builder, const Tiers& tiers);
void build_direct_scatter(Builder& builder, const Tiers& tiers);
void build_direct_all_to_all(Builder& builder, const Tiers& tiers);

PlanLoad one_shot_all_reduce_load(const Tiers& tiers);
PlanLoad two_shot_all_reduce_load(const Tiers& tiers);
PlanLoad direct_reduce_scatter_load(const Tiers& tiers);
PlanLoad direct_all_gather_load(const Tiers& tiers);
PlanLoad direct_broadcast_load(const Tiers& tiers);
PlanLoad direct_reduce_load(const Tiers& tiers);
PlanLoad direct_gather_load(const Tiers& tiers);
PlanLoad direct_scatter_load(const Tiers& tiers);
PlanLoad direct_all_to_all_load(const Tiers& tiers);
PlanLoad one_shot_barrier_load(const Tiers& tiers);

}  // namespace seto
