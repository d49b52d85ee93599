#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/core/choice/cost_model.h"
#include "src/engine/simulation/simulated_engine.h"
#include "src/report/graph_facts.h"
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

// The links between the ranks. What the graph does not state is named in the assumptions.
SimulationModel model_of(const GraphFacts& facts);

// The link function of the machine with these limits.
void limit(SimulationModel& model, const FarPairs& pairs);

}  // namespace seto
