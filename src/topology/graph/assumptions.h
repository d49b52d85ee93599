#pragma once

#include <optional>

#include "src/topology/graph/topology_graph.h"

namespace seto {

// The rate of one link of a GPU in one direction by its data sheet, from its compute capability or AMD's architecture. Absent
// for models that are not in the table.
std::optional<double> gpu_link_bytes_per_second(const Gpu& gpu);

// Completes the hint, which a file gave, by what discovery found on the host itself: devices are joined by PCI address, NUMA
// nodes by number, interfaces without a PCI device by name. What the hint states stays. Devices that only discovery knows are
// added.
void complete(TopologyHost& hint, const TopologyHost& found);

// Fills what is still unknown by rules, marks each such value as assumed, and says in the notes of the host what was guessed: a
// device of GPU class is a GPU, a device of network class has one port, a PCI link without a speed has 16 lanes of generation 3,
// a port without a speed carries 10 Gbit/s, the interconnect has the rate of its vendor.
void assume_missing(TopologyHost& host);
void assume_missing(TopologyGraph& graph);

}  // namespace seto
