#pragma once

#include <string>

#include "src/topology/discovery/host_api.h"
#include "src/topology/graph/topology_graph.h"

namespace seto {

// The device of this address in the host; null if there is none.
PciDevice* find_device(TopologyHost& host, const PciAddress& address);

// The last PCI address in a path of sysfs, such as /sys/devices/pci0000:00/0000:00:03.0/virtio1/net/eth0.
std::optional<PciAddress> last_address(const std::string& path);

// The NUMA nodes that sysfs lists, with their cores; one without a number if it lists none.
void add_numa_nodes(TopologyHost& host, HostApi& system);

// The GPUs and NICs that sysfs lists, below their switches. For hosts without hwloc.
void add_pci_devices(TopologyHost& host, HostApi& system);

// The same for the device of one address, whatever its class.
void add_pci_device(TopologyHost& host, HostApi& system, const PciAddress& address);

// Sets the link of each device to what sysfs states: the lower of what the device and the port above it can do. The speed of the
// moment is not used, because GPUs that idle slow their links down.
void set_link_speeds(TopologyHost& host, HostApi& system);

}  // namespace seto
