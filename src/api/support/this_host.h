#pragma once

#include "src/topology/graph/topology_graph.h"

namespace seto::api {

// The topology of this machine, with what the verbs say of its RDMA ports: the GID that a communicator would use, and why.
[[nodiscard]] TopologyHost this_host();

}  // namespace seto::api
