#pragma once

#include <string>

#include "algorithms/algorithm.h"

namespace seto {

// As a hierarchical plan, but among the hosts of a site sums and results go round a ring: each rank has two peers there, however
// many hosts a site has, and a message of each member is paid as a hop.
void build_host_ring_all_reduce(Builder& builder, const Tiers& tiers);
void build_host_ring_reduce_scatter(Builder& builder, const Tiers& tiers);
void build_host_ring_all_gather(Builder& builder, const Tiers& tiers);

// Empty if some site has three hosts or more, and there is another tier: else `ring` is the same.
std::string refuses_host_ring(const Tiers& tiers);

PlanLoad host_ring_all_reduce_load(const Tiers& tiers);
PlanLoad host_ring_reduce_scatter_load(const Tiers& tiers);
PlanLoad host_ring_all_gather_load(const Tiers& tiers);

}  // namespace seto
