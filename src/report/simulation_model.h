#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/core/choice/cost_model.h"
#include "src/engine/simulation/simulated_engine.h"
#include "src/topology/graph/topology_graph.h"
#include "src/topology/tiers.h"

namespace seto {

// A port or a shared link. Links of one kind are summed up in a report.
struct NamedLink {
  std::string kind;
  std::string name;
  double bytes_per_second = 0;
};

// The ranks of a job on a topology graph, and the links between them as the simulation takes them.
struct SimulationModel {
  Tiers tiers = Tiers::flat(1);
  CostModel costs;      // what choice takes for these links
  double crowding = 1;  // ranks for each core of the most crowded host
  SimulatedMachine machine;
  std::map<std::uint32_t, NamedLink> wires;  // the ports of the machine
  std::vector<NamedLink> shared;             // by shared link
  std::vector<std::string> assumptions;      // what the graph does not state, for people
};

// The limits of a pair of ranks of different sites; 0: none.
struct FarPairs {
  double window_bytes = 0;
  std::uint32_t sockets = 0;
};

// Places `ranks` evenly on the hosts of the graph, one host after another (0: a rank for each GPU, and one for each host without
// GPUs). What the graph does not state comes from `costs`; each such value is named in the assumptions.
Result<SimulationModel> model_of(const TopologyGraph& graph, int ranks, const CostModel& costs);

// The link function of the machine with these limits.
void limit(SimulationModel& model, const FarPairs& pairs);

}  // namespace seto
