#pragma once

#include <cstddef>

#include "include/seto/seto.h"
#include "src/base/result.h"
#include "src/topology/graph/topology_graph.h"

namespace seto::api {

// The topology that the files of a caller state. An error names the file.
Result<TopologyGraph> graph_of(const setoTopologyText_t* files, std::size_t count);

}  // namespace seto::api
