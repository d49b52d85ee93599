#pragma once

#include "src/topology/discovery/host_api.h"
#include "src/topology/graph/topology_graph.h"

namespace seto {

// Adds network interfaces: speed, MTU, state, addresses, and which has the default route. An interface without a PCI device (of a
// container, for example) belongs to the first NUMA node, and is left out if it has no address. The loopback interface is left
// out.
void add_interfaces(TopologyHost& host, HostApi& system);

// Adds the ports of RDMA devices by sysfs: name, rate, state, GUID.
void add_rdma_ports(TopologyHost& host, HostApi& system);

}  // namespace seto
