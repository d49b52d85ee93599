#pragma once

#include "algorithms/algorithm.h"

namespace seto {

// Part p passes once round the ring, one contribution is added at every hop, and it ends complete at member p. n - 1 rounds.
void ring_reduce_scatter(Builder& builder, const Group& group, const Parts& parts);
// Part p passes once round the ring from member p, and every member keeps it. n - 1 rounds.
void ring_all_gather(Builder& builder, const Group& group, const Parts& parts);

void build_ring_all_reduce(Builder& builder, const Tiers& tiers);
void build_ring_reduce_scatter(Builder& builder, const Tiers& tiers);
void build_ring_all_gather(Builder& builder, const Tiers& tiers);
void build_ring_broadcast(Builder& builder, const Tiers& tiers);  // a chain, pipelined by slices
void build_ring_reduce(Builder& builder, const Tiers& tiers);     // the same chain, backwards

PlanLoad ring_all_reduce_load(const Tiers& tiers);
PlanLoad ring_reduce_scatter_load(const Tiers& tiers);
PlanLoad ring_all_gather_load(const Tiers& tiers);
PlanLoad ring_broadcast_load(const Tiers& tiers);
PlanLoad ring_reduce_load(const Tiers& tiers);

}  // namespace seto
