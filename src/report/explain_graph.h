#pragma once

#include <array>
#include <string>

#include "src/core/choice/cost_model.h"
#include "src/report/explain_tiers.h"
#include "src/topology/graph/topology_graph.h"

namespace seto {

// The tiers and constants that a topology file gives for ranks on its hosts.
struct GraphFacts {
  Tiers tiers = Tiers::flat(1);
  CostModel costs;
  double crowding = 1;                          // ranks for each core of the most crowded host whose cores are known
  std::array<TierOrigins, kMostTiers> origins;  // by TierKind
  std::string notes;                            // what the file does not state and was guessed
};

// `ranks`: 0 for one on each GPU, or on each host without one; else a multiple of that number, on as many copies of all hosts.
// `costs` holds where the graph states nothing.
Result<GraphFacts> facts_of_graph(TopologyGraph graph, int ranks, const CostModel& costs);

}  // namespace seto
