#pragma once

#include <cstddef>
#include <vector>

#include "src/base/types.h"

namespace seto {

// How the result of a round travels to many ranks: the server gives it to a few, which hand it on. Contributions go straight to
// the server. Up to kStarRanks ranks, and for results up to kStarResultSize, the server tells everybody itself.
inline constexpr int kStarRanks = 32;
inline constexpr std::size_t kStarResultSize = 1024;
inline constexpr int kTreeTops = 4;  // that the server serves
inline constexpr int kTreeFan = 8;   // children of a rank

[[nodiscard]] constexpr bool has_tree(int size) { return size > kStarRanks; }
// -1: at the top.
[[nodiscard]] constexpr Rank tree_parent(Rank rank) { return rank < kTreeTops ? -1 : (rank - kTreeTops) / kTreeFan; }
// In order; empty where there is no tree.
[[nodiscard]] std::vector<Rank> tree_children(Rank rank, int size);

}  // namespace seto
