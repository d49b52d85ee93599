#include "src/topology/search/graph_search.h"

#include <algorithm>
#include <utility>

namespace seto {
namespace {

bool has_same_devices(const TopologyHost& one, const TopologyHost& other) {
  return one.nodes == other.nodes && one.interconnect == other.interconnect;
}

HostChannels channels_of(const TopologyHost& host, const SearchLimits& limits) {
  HostChannels found;
  found.rails = rails_of(host);
  std::vector<int> starts;
  for (const Rail& rail : found.rails) starts.push_back(rail.member);
  const HopGraph hops = HopGraph::of(host);
  found.rings = find_rings(hops, limits, starts);
  found.trees = find_trees(hops, limits, starts);
  return found;
}

// Two binary trees over positions: the second one has the positions turned round.
std::vector<TreeParents> trees_over(int hosts) {
  TreeParents one(static_cast<std::size_t>(hosts), -1);
  TreeParents other(one);
  for (int i = 1; i < hosts; ++i) {
    one[static_cast<std::size_t>(i)] = (i - 1) / 2;
    other[static_cast<std::size_t>(hosts - 1 - i)] = hosts - 1 - (i - 1) / 2;
  }
  return {one, other};
}

// The bytes a second that a host passes on in a ring of its site. 0: unknown.
double rate_of(const HostChannels& host) {
  double ports = 0;
  for (const Rail& rail : host.rails) ports += rail.bytes_per_second;
  const double inside = host.rings.bytes_per_second();
  return inside == 0 || ports == 0 ? ports : std::min(ports, inside);
}

SiteChannels channels_of_site(const TopologyGraph& graph, const std::vector<HostChannels>& hosts, std::size_t site) {
  SiteChannels found;
  for (std::size_t host = 0; host < graph.hosts.size(); ++host)
    if (graph.hosts[host].site == site) found.hosts.push_back(host);
  for (const std::size_t host : found.hosts) {
    found.channels = std::max(found.channels, hosts[host].rings.channels.size());
    const double rate = rate_of(hosts[host]);
    if (host == found.hosts.front() || rate < found.ring_bytes_per_second) found.ring_bytes_per_second = rate;
  }
  if (const auto fabric = graph.sites[site].fabric.bytes_per_second; fabric && found.hosts.size() > 1)
    found.ring_bytes_per_second = found.ring_bytes_per_second == 0 ? *fabric : std::min(*fabric, found.ring_bytes_per_second);
  found.trees = trees_over(static_cast<int>(found.hosts.size()));
  return found;
}

}  // namespace

std::vector<SiteMember> GraphChannels::site_ring(std::size_t site, std::size_t channel) const {
  std::vector<SiteMember> members;
  for (const std::size_t host : sites[site].hosts) {
    const HostChannels& inside = hosts[host];
    RingOrder ring = inside.rings.channels[channel % inside.rings.channels.size()];
    if (!inside.rails.empty()) {
      const int first = inside.rails[channel % inside.rails.size()].member;
      std::rotate(ring.begin(), std::find(ring.begin(), ring.end(), first), ring.end());
    }
    for (const int member : ring) members.push_back({host, member});
  }
  return members;
}

SiteCosts site_costs(const TopologyGraph& graph) {
  const std::size_t count = graph.sites.size();
  SiteCosts costs(count, std::vector<double>(count));
  for (std::size_t from = 0; from < count; ++from)
    for (std::size_t to = 0; to < count; ++to) {
      LinkFacts link = graph.between_sites.empty() ? LinkFacts() : graph.between_sites[from][to];
      link.bytes_per_second = rate_between(graph, from, to).bytes_per_second;
      if (from != to) costs[from][to] = seconds_of_message(link);
    }
  return costs;
}

GraphChannels search_channels(const TopologyGraph& graph, const SearchLimits& limits) {
  GraphChannels found;
  std::vector<std::size_t> different;  // hosts whose devices no earlier host has
  for (std::size_t host = 0; host < graph.hosts.size(); ++host) {
    const auto same = std::find_if(different.begin(), different.end(), [&](std::size_t earlier) {
      return has_same_devices(graph.hosts[earlier], graph.hosts[host]);
    });
    found.like.push_back(same == different.end() ? host : *same);
    if (same == different.end()) different.push_back(host);
    found.hosts.push_back(found.like.back() == host ? channels_of(graph.hosts[host], limits)
                                                    : HostChannels(found.hosts[found.like.back()]));
  }
  for (std::size_t site = 0; site < graph.sites.size(); ++site) found.sites.push_back(channels_of_site(graph, found.hosts, site));
  found.order = site_order(site_costs(graph));
  return found;
}

}  // namespace seto
