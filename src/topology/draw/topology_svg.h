#pragma once

#include <string>

#include "src/topology/graph/topology_graph.h"

namespace seto {

// A drawing: a column for each site with its hosts below each other, and arrows for the links between sites. In a host, rings and
// trees stand on top, and GPUs above the PCI switch that they share with the NICs below it. A dashed frame marks what is assumed.
// At most 8 hosts of a site are drawn, and the rest is counted.
std::string topology_svg(const TopologyGraph& graph);

}  // namespace seto
