#pragma once

#include <string>
#include <vector>

#include "src/topology/discovery/host_api.h"
#include "src/topology/graph/topology_graph.h"

namespace seto {

// Adds network interfaces: speed, MTU, state, addresses, and which has the default route. An interface without a PCI device (of a
// container, for example) belongs to the first NUMA node, and is left out if it has no address. The loopback interface is left
// out.
void add_interfaces(TopologyHost& host, HostApi& system);

// Adds the ports of RDMA devices by sysfs: name, rate, state, GUID, link layer, and whether they may read memory of GPUs. A
// software device belongs to the NIC that it works over. A host without a device gets a note.
void add_rdma_ports(TopologyHost& host, HostApi& system);

// The facts of a port that only the verbs know. Values that are empty or 0 are not known.
struct VerbsPort {
  std::string device;
  int port = 0;
  RdmaPort rdma;
  int mtu = 0;
  int speed_mbit = 0;
};
// Adds it to the ports that add_rdma_ports() has found; others are left out, for their place is not known.
void add_verbs(TopologyHost& host, const std::vector<VerbsPort>& known);

}  // namespace seto
