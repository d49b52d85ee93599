#include "algorithms/pairwise.h"

#include "algorithms/direct.h"

namespace seto {

void build_pairwise_all_to_all(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  for (int distance = 1; distance < all.size(); ++distance) {
    for (const int from : all.touching({0, distance})) {
      const Rank to = all[from + distance];
      builder.copy(all[from], to, builder.part_of(all[from], to));
    }
    builder.next_round();
  }
}

// The bytes are those of the direct algorithm. In the skewed order a message waits for the message of the round before, so each
// round is a hop.
PlanLoad pairwise_all_to_all_load(const Tiers& tiers) {
  PlanLoad plan = direct_all_to_all_load(tiers);
  plan.tiers[static_cast<std::size_t>(tiers.count() - 1)].hops = tiers.ranks() - 1;
  return plan;
}

}  // namespace seto
