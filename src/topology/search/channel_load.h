#pragma once

#include <cstddef>
#include <vector>

#include "src/topology/search/hop_graph.h"

namespace seto {

// The rates that are left of the shared links of a host while channels are placed on them.
class ChannelLoad final {
 public:
  explicit ChannelLoad(const HopGraph& graph) : left_(graph.shared()) {}

  // Takes this much of every link of the hop, or nothing if one of them has less left.
  bool take(const Hop& hop, double bytes_per_second) {
    if (left_over(hop) < bytes_per_second * (1 - kRounding)) return false;
    for (const int link : hop.shared) left_[static_cast<std::size_t>(link)] -= bytes_per_second;
    return true;
  }
  void give_back(const Hop& hop, double bytes_per_second) {
    for (const int link : hop.shared) left_[static_cast<std::size_t>(link)] += bytes_per_second;
  }
  // The least that is left of the links of a hop.
  [[nodiscard]] double left_over(const Hop& hop) const {
    double least = kUnlimited;
    for (const int link : hop.shared)
      least = left_[static_cast<std::size_t>(link)] < least ? left_[static_cast<std::size_t>(link)] : least;
    return least;
  }

  // k channels of a k-th of a link fill it, although the sum is rounded.
  static constexpr double kRounding = 1e-6;
  static constexpr double kUnlimited = 1e18;  // of a hop that shares no link

 private:
  std::vector<double> left_;
};

}  // namespace seto
