#include "src/topology/graph/job_part.h"

#include <string>
#include <utility>

#include "src/base/text.h"

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
  for (std::uint32_t site = 0; site < count; ++site) {
    TopologySite& one = graph.sites[site];
    if (site < sites.names.size())
      one.name = plain_ascii(sites.names[site]);
    else if (count > 1)
      one.name = std::to_string(site);
    if (site >= sites.rates.size() || !sites.is_rate_of_file(site)) continue;
    one.uplink.bytes_per_second = sites.rates[site].up;
    one.downlink.bytes_per_second = sites.rates[site].down;
    one.uplink.source = one.downlink.source = FactSource::file;
  }
  for (std::uint32_t from = 0; from < count; ++from)
    for (std::uint32_t to = 0; to < count; ++to)
      if (from != to) {
        LinkFacts& link = graph.between(from, to) = sites.links.between(from, to);
        if (sites.link_rates_of_file && link.bytes_per_second) link.source = FactSource::file;
      }
  host.site = sites.of_rank.empty() ? 0 : sites.of_rank[static_cast<std::size_t>(rank)];
  graph.hosts.push_back(std::move(host));
  return graph;
}

}  // namespace seto
