#pragma once

#include <cstddef>
#include <vector>

#include "src/topology/search/hop_graph.h"

namespace seto {

struct SearchLimits {
  int most_channels = 16;
  // Assumed: about what one thread block of a GPU copies. So a fast link has several channels.
  double channel_bytes_per_second = 50e9;
  // Hops that are tried. A host of 8 GPUs and one switch needs some 2,000.
  std::size_t steps = std::size_t{1} << 18;
};

// A ring: the order of the members; the last one is followed by the first.
using RingOrder = std::vector<int>;
// A tree: the parent of each member, -1 for the root. A member has at most two children.
using TreeParents = std::vector<int>;

// Channels of one pattern, rings or trees. Each has the same speed, and shared links never carry more than they can.
struct FoundChannels {
  std::vector<std::vector<int>> channels;  // RingOrder or TreeParents; at least one
  double channel_bytes_per_second = 0;     // 0: a single member
  HopKind worst_hop = HopKind::gpu_link;   // that any of them uses
  bool is_fallback = false;                // the budget ended, or nothing fits: members in their order
  std::size_t steps = 0;                   // that were used

  [[nodiscard]] double bytes_per_second() const { return channel_bytes_per_second * static_cast<double>(channels.size()); }
};

// Down a ladder of speeds: the best kind of hops that joins all members, on it the most bytes a second in all, and among equals a
// number of channels that is a multiple of `rails` (so that each port carries as much), else the fewest channels. Channel i of
// the result begins at member starts[i mod starts.size()], the first member if there are none.
FoundChannels find_rings(const HopGraph& graph, const SearchLimits& limits, const std::vector<int>& starts);
FoundChannels find_trees(const HopGraph& graph, const SearchLimits& limits, const std::vector<int>& starts);

// The speeds that are tried, the fastest first: the rate of some shared link in 1 to 2 * most_channels equal parts, because a
// member passes on more than one message of a tree.
std::vector<double> speed_ladder(const HopGraph& graph, const SearchLimits& limits);

}  // namespace seto
