#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/topology/graph/topology_graph.h"

namespace seto {

inline constexpr std::size_t kMostHosts = 4096;

// A graph to be joined with others.
struct GraphPart {
  TopologyGraph graph;
  std::string site;        // the site of all its hosts; empty: the sites that the graph states
  std::size_t copies = 1;  // as many hosts like each of its hosts
};

// One graph of all parts. Sites of equal names are one site. Hosts without a name, or with the name of an earlier host, get a
// number.
Result<TopologyGraph> join_graphs(std::vector<GraphPart> parts);

}  // namespace seto
