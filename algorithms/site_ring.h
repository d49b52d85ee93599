#pragma once

#include <string>

#include "algorithms/algorithm.h"

namespace seto {

// Within sites as a hierarchical plan. Between sites sums and results go round a ring, in the order of Tiers::ring(): so they
// cross only the links of that ring, and two sites that have a slow link to each other need not exchange anything.
void build_site_ring_all_reduce(Builder& builder, const Tiers& tiers);

// Empty if there are three sites or more, of equal sizes.
std::string refuses_site_ring(const Tiers& tiers);
std::uint32_t chunks_of_site_ring(const Tiers& tiers);

PlanLoad site_ring_all_reduce_load(const Tiers& tiers);

}  // namespace seto
