#include "src/topology/graph/job_part.h"

#include <string>
#include <utility>

namespace seto {
bool tells_topology(const Tiers& tiers, Rank rank) {
  if (tiers.kind(0) != TierKind::node) return true;  // each rank has a node of its own
  for (Rank other = 0; other < rank; ++other)
    if (tiers.block_of(other, 0) == tiers.block_of(rank, 0)) return false;
  return true;
}

TopologyGraph part_of_job(TopologyHost host, const Sites& sites, Rank rank) {
  TopologyGraph graph;
  const std::uint32_t count = sites.links.sites();
  graph.sites.resize(count);
  for (std::uint32_t site = 0; count > 1 && site < count; ++site) graph.sites[site].name = std::to_string(site);
  for (std::uint32_t from = 0; from < count; ++from)
    for (std::uint32_t to = 0; to < count; ++to)
      if (from != to) graph.between(from, to) = sites.links.between(from, to);
  host.site = sites.of_rank.empty() ? 0 : sites.of_rank[static_cast<std::size_t>(rank)];
  graph.hosts.push_back(std::move(host));
  return graph;
}

}  // namespace seto
