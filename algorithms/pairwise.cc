#include "algorithms/pairwise.h"

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

}  // namespace seto
