#pragma once

#include <cstddef>
#include <vector>

#include "src/base/types.h"

namespace seto {

// The tree that distributes the result of a round to many ranks: the server sends it to a few ranks, which forward it.
// Contributions go directly to the server. With up to kStarRanks ranks, and for results up to kStarResultSize bytes, the server
// sends to every rank itself.
inline constexpr int kStarRanks = 32;
inline constexpr std::size_t kStarResultSize = 1024;
inline constexpr int kTreeTops = 4;  // ranks that the server serves
inline constexpr int kTreeFan = 8;   // children of a rank

[[nodiscard]] constexpr bool has_tree(int size) { return size > kStarRanks; }
// Returns -1 for a rank at the top.
[[nodiscard]] constexpr Rank tree_parent(Rank rank) { return rank < kTreeTops ? -1 : (rank - kTreeTops) / kTreeFan; }
// The children in rank order; empty where there is no tree.
[[nodiscard]] std::vector<Rank> tree_children(Rank rank, int size);

}  // namespace seto
