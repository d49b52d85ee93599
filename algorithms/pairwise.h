#pragma once

#include "algorithms/algorithm.h"

namespace seto {

// One distance for each round: every rank sends to one peer and receives from one, so no link carries two flows at once.
void build_pairwise_all_to_all(Builder& builder, const Tiers& tiers);

PlanLoad pairwise_all_to_all_load(const Tiers& tiers);

}  // namespace seto
