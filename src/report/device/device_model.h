#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/core/choice/cost_model.h"
#include "src/engine/simulation/simulated_devices.h"
#include "src/topology/graph/topology_graph.h"

namespace seto {

// The GPUs of a node as ranks, and what a call between them costs.
struct DeviceModel {
  int ranks = 0;
  std::uint32_t blocks = 0;  // of each rank
  std::string machine;       // "8 x H100 SXM, joined by NVSwitch"
  SimulatedDevices devices;
  CostModel costs;                       // of choice, as a communicator takes them from the same topology (device_costs.h)
  bool has_nccl_figures = false;         // of this machine
  std::vector<std::string> assumptions;  // for people, with their sources
};

inline constexpr std::uint32_t kDefaultBlocks = 32;  // as many as a call has at most (device_communicator.cc)
inline constexpr std::uint32_t kMostBlocks = 132;    // an H100 has as many multiprocessors, and all blocks are resident

// The model of the first `ranks` GPUs of the only host of a topology; 0: of all. Fails where the topology has no GPU, several
// hosts, or GPUs without published figures.
Result<DeviceModel> device_model_of(const TopologyGraph& graph, int ranks, std::uint32_t blocks);

}  // namespace seto
