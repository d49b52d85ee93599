#pragma once

#include "src/topology/graph/topology_graph.h"
#include "src/topology/site_links.h"
#include "src/topology/tiers.h"

namespace seto {

// True for the first rank of each node, which tells the topology of its host.
bool tells_topology(const Tiers& tiers, Rank rank);

// The host of a rank as a part of its job: all sites of the job, the links between them that the ranks know, and this one host in
// its site. join_graphs makes one graph of the parts of all hosts.
TopologyGraph part_of_job(TopologyHost host, const Sites& sites, Rank rank);

}  // namespace seto
