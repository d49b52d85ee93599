#pragma once

#include <cstddef>
#include <vector>

#include "src/topology/graph/graph_views.h"

namespace seto {

// A port of a host and the member beside it, through which a part of the channels leaves the host.
struct Rail {
  std::size_t port = 0;  // in the order of ports_of
  int member = 0;        // the GPU, in the order of gpus_of; 0 for a host without GPUs
  PciDistance distance = PciDistance::other_node;
  double bytes_per_second = 0;  // 0: unknown
};

// A rail for each usable port, so that every port carries its share: it belongs to the nearest GPU, among equally near ones to
// the one with the fewest rails. A port is not usable if it is known to be down, or has less than half the rate of the fastest.
std::vector<Rail> rails_of(const TopologyHost& host);

// Bytes a second of all these rails together; 0: unknown.
double rate_of_all(const std::vector<Rail>& rails);

}  // namespace seto
