#pragma once

#include "algorithms/algorithm.h"

namespace seto {

// Logarithmic rounds for any number of members. In the round with reach h, member i receives from member i + h the parts that
// only
// the latter has; the reach doubles each round. The scatter is the same in reverse order, adding instead of copying.
void halving_reduce_scatter(Builder& builder, const Group& group, const Parts& parts);
void doubling_all_gather(Builder& builder, const Group& group, const Parts& parts);

void build_halving_doubling_all_reduce(Builder& builder, const Tiers& tiers);
void build_halving_reduce_scatter(Builder& builder, const Tiers& tiers);
void build_doubling_all_gather(Builder& builder, const Tiers& tiers);

// Exchanges whole vectors between pairs at distances 1, 2, 4 …: the fewest possible rounds. Ranks beyond a power of two first
// send their contribution to a rank within it, and receive the result last.
void build_recursive_doubling_all_reduce(Builder& builder, const Tiers& tiers);

PlanLoad halving_doubling_all_reduce_load(const Tiers& tiers);
PlanLoad halving_reduce_scatter_load(const Tiers& tiers);
PlanLoad doubling_all_gather_load(const Tiers& tiers);
PlanLoad recursive_doubling_all_reduce_load(const Tiers& tiers);
PlanLoad recursive_doubling_barrier_load(const Tiers& tiers);

}  // namespace seto
