#pragma once

#include "algorithms/algorithm.h"

namespace seto {

// All_to_all over two or three tiers. What a rank has for a site lies side by side in its input, and travels there as one message
// to a carrier. The carrier passes on to each node of its site what is for that node, and so on to single ranks. Carriers are
// spread evenly: a site of b ranks has one partner in it for each rank outside, or several where fewer ranks are outside. So a
// rank sends as many messages over a border as there are other sites, not one to each rank there.
void build_hierarchical_all_to_all(Builder& builder, const Tiers& tiers);

PlanLoad hierarchical_all_to_all_load(const Tiers& tiers);

}  // namespace seto
