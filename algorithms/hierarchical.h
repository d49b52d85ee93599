#pragma once

#include "algorithms/algorithm.h"

namespace seto {

// Two or three tiers, composed from direct phases: sums are scattered inside the node, then inside the site, then exchanged
// between sites by every rank at once, and gathered back the same way. Each tier carries only what the tier inside it left over.
void build_hierarchical_all_reduce(Builder& builder, const Tiers& tiers);
void build_hierarchical_reduce_scatter(Builder& builder, const Tiers& tiers);
void build_hierarchical_all_gather(Builder& builder, const Tiers& tiers);
void build_hierarchical_broadcast(Builder& builder, const Tiers& tiers);
void build_hierarchical_reduce(Builder& builder, const Tiers& tiers);

}  // namespace seto
