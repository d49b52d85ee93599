#pragma once

#include <array>
#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/core/choice/cost_model.h"
#include "src/report/explain_tiers.h"
#include "src/topology/graph/topology_graph.h"

namespace seto {

// Half of the 3.35 TB/s of an H100's memory.
inline constexpr double kGpuMemoryBytesPerSecond = 1.7e12;
// A store over NVLink and the flag behind it.
inline constexpr double kGpuHopSeconds = 2e-6;

// The ranks of a host and the links that they have.
struct HostLinks {
  int ranks = 0;
  double gpu_bytes_per_second = 0;  // of each GPU to the others; 0: ranks share memory
  double bytes_per_second = 0;      // of the host to other hosts of its site
  std::string rate_origin;
  bool has_rails = false;  // each rank is a GPU and has ports of its own
  std::size_t cores = 0;   // 0: not stated
};

// Ranks on the hosts of a topology file, and what is known of their links. The choice that is explained and the call that is
// simulated both follow from it.
struct GraphFacts {
  TopologyGraph graph;           // with as many hosts as the ranks need. A rate and a round trip between any two sites are known.
  std::vector<Home> homes;       // by rank
  std::vector<HostLinks> hosts;  // by host
  bool on_gpus = false;          // of all hosts
  Tiers tiers = Tiers::flat(1);  // with the rates of the sites, if all have one
  CostModel costs;
  double crowding = 1;                          // ranks for each core of the most crowded host whose cores are known
  std::array<TierOrigins, kMostTiers> origins;  // by TierKind
  std::string notes;                            // what the file does not state and was guessed
  std::string unused_tuning;                    // "SETO_TUNING_FILE: ... does not apply: ..."; empty: all of it applies
  std::vector<std::string> assumptions;         // about links, what the file does not state
};

// The rates that settings state for a site; one direction stands for the other. 0: none.
PortRates site_rates_of(const Config& config);

// `ranks`: 0 for one on each GPU, or on each host without one. More GPUs need more hosts: a multiple of that number is on as many
// copies of all hosts. Without GPUs any number of ranks is spread evenly over the hosts, one host after another. `costs` holds
// where the graph states nothing, and `of_sites` for each site whose uplink or downlink it does not state.
Result<GraphFacts> facts_of_graph(TopologyGraph graph, int ranks, const CostModel& costs, PortRates of_sites = {});

}  // namespace seto
