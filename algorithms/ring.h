#pragma once

#include "algorithms/algorithm.h"

namespace seto {

// Part p travels once round the ring, growing at every hop, and ends complete at member p. n - 1 rounds.
void ring_reduce_scatter(Builder& builder, const Group& group, const Parts& parts);
// Part p travels once round the ring from member p and stays with everybody. n - 1 rounds.
void ring_all_gather(Builder& builder, const Group& group, const Parts& parts);

void build_ring_all_reduce(Builder& builder, const Tiers& tiers);
void build_ring_reduce_scatter(Builder& builder, const Tiers& tiers);
void build_ring_all_gather(Builder& builder, const Tiers& tiers);
void build_ring_broadcast(Builder& builder, const Tiers& tiers);  // a chain, pipelined by slices
void build_ring_reduce(Builder& builder, const Tiers& tiers);     // the same chain, backwards

}  // namespace seto
