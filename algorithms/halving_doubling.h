#pragma once

#include "algorithms/algorithm.h"

namespace seto {

// Logarithmic rounds for any number of members. Round with reach h: member i gathers, from member i + h, the parts that one
// has and it has not; reach doubles each round. The scatter is the same run backwards, adding instead of copying.
void halving_reduce_scatter(Builder& builder, const Group& group, const Parts& parts);
void doubling_all_gather(Builder& builder, const Group& group, const Parts& parts);

void build_halving_doubling_all_reduce(Builder& builder, const Tiers& tiers);
void build_halving_reduce_scatter(Builder& builder, const Tiers& tiers);
void build_doubling_all_gather(Builder& builder, const Tiers& tiers);

// Whole vectors between pairs at distances 1, 2, 4 …: the fewest rounds there are. Ranks beyond a power of two hand their
// contribution to a neighbour first and get the result last.
void build_recursive_doubling_all_reduce(Builder& builder, const Tiers& tiers);

}  // namespace seto
