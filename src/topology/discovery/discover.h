#pragma once

#include <memory>

#include "src/base/clock.h"
#include "src/topology/discovery/host_api.h"
#include "src/topology/discovery/hwloc_api.h"
#include "src/topology/discovery/nvml_api.h"
#include "src/topology/graph/topology_graph.h"

namespace seto {

// Discovers this host: NUMA nodes and PCI devices by hwloc, or by sysfs without it; link speeds, network interfaces and RDMA
// devices by sysfs; GPUs and their links by NVML, joined by PCI address. A source that is missing is no error: a note says what
// is missing, and what was used in its place. It takes some 50 ms, so it runs only where a user asks for it, never at init.
TopologyHost discover(HostApi& system, HwlocApi& hwloc, NvmlApi& nvml);
TopologyHost discover_this_host();

// The GPU at this address, with the switches above it and its GPU links, by sysfs and NVML. No other device is looked at, so an
// init of a communicator on device memory may ask. Without GPUs: neither source knows a GPU there.
TopologyHost discover_gpu(HostApi& system, NvmlApi& nvml, const PciAddress& address);
// The same on a thread of its own, which is left alone where a driver that has failed keeps it: without GPUs after the deadline.
TopologyHost discover_gpu(std::shared_ptr<HostApi> system, std::shared_ptr<NvmlApi> nvml, const PciAddress& address,
                          Deadline until);
TopologyHost discover_gpu_of_this_host(const PciAddress& address, Deadline until);

}  // namespace seto
