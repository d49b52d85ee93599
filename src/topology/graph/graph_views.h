#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/topology/graph/topology_graph.h"
#include "src/topology/tiers.h"

namespace seto {

// Views of a graph. Pointers in them point into the graph.

// A PCI device with the switches above it: the last of the path is the device, the first hangs under the NUMA node.
struct DevicePlace {
  const NumaNode* node = nullptr;
  std::vector<const PciDevice*> path;
};
struct GpuPlace : DevicePlace {
  const Gpu* gpu = nullptr;
};
// The path of a network interface without a PCI device is empty.
struct PortPlace : DevicePlace {
  const NetPort* port = nullptr;
};

// In the order of the tree.
std::vector<GpuPlace> gpus_of(const TopologyHost& host);
std::vector<PortPlace> ports_of(const TopologyHost& host);

// How far two devices are apart; a smaller value is nearer. one_switch: the same switch is directly above both; several_switches:
// some switch is above both; same_node and other_node: only the NUMA node, or the interconnect between nodes, joins them.
enum class PciDistance : std::uint8_t { same_device, one_switch, several_switches, same_node, other_node };
PciDistance distance(const DevicePlace& left, const DevicePlace& right);

// The ports with the smallest distance from the GPU.
std::vector<PortPlace> nearest_ports(const TopologyHost& host, const GpuPlace& gpu);

// The direct links between two GPUs, or their way over switches of GPU links that both reach: its rate is that of the slower
// side. Absent if only PCI joins them. The rate is assumed from the GPU's model.
std::optional<LinkFacts> gpu_link(const GpuPlace& from, const GpuPlace& to);
// The rate of all links together that lead from a GPU to other devices. Absent if it has none, or its model is not known.
std::optional<double> gpu_bytes_per_second(const GpuPlace& gpu);
// True if every GPU of the host reaches every other over switches of GPU links. False for fewer than two GPUs.
bool all_joined_by_switches(const TopologyHost& host);

// The rate at which a site can send to another: the least of their link, the uplink and the downlink, with the source of that
// value. 0: no rate is known.
struct SiteRate {
  double bytes_per_second = 0;
  FactSource source = FactSource::assumed;
};
SiteRate rate_between(const TopologyGraph& graph, std::size_t from, std::size_t to);
// The number of the site, if it has no name.
std::string site_name(const TopologyGraph& graph, std::size_t site);

// The home of each rank: GPUs with a rank are in the order of their ranks; if a GPU has none, or a rank is there twice, GPUs are
// numbered in the order of the graph. A host without GPUs counts as one rank. Nodes are hosts.
std::vector<Home> homes_of(const TopologyGraph& graph);
// The tiers of the graph. A graph without hosts is one rank.
Tiers tiers_of(const TopologyGraph& graph);

}  // namespace seto
