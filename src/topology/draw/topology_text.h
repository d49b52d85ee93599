#pragma once

#include <string>

#include "src/topology/graph/topology_graph.h"

namespace seto {

// The tree for people: sites, hosts, NUMA nodes, PCI switches, GPUs and NICs, a line for each, with the link above it and, in
// brackets, the source of the fact; then links that are not part of the tree, the tiers, and what was guessed.
std::string topology_text(const TopologyGraph& graph);

// The same for programs. A value that is not known is left out.
std::string topology_json(const TopologyGraph& graph);

}  // namespace seto
