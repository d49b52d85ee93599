#pragma once

#include "algorithms/algorithm.h"

namespace seto {

// One distance a round: every rank sends to one peer and receives from one, so that no link carries two flows at once.
void build_pairwise_all_to_all(Builder& builder, const Tiers& tiers);

}  // namespace seto
