#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace seto::command {

// Topologies that need no file, as texts of NCCL's format. Nothing if no model has that name.
//   oci-h100: a host of eight H100 as Oracle's cloud has them (BM.GPU.H100.8): two NUMA nodes, a PCI switch for each GPU and its
//   NIC of two ports of 200 Gbit/s, and four switches that join the GPUs by 18 NVLinks each. Its PCI addresses are made up.
std::optional<std::string> topology_model(std::string_view name);

}  // namespace seto::command
