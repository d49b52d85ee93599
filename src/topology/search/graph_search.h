#pragma once

#include <cstddef>
#include <vector>

#include "src/topology/search/channel_search.h"
#include "src/topology/search/rails.h"
#include "src/topology/search/site_order.h"

namespace seto {

// The channels of one host. Channel i leaves the host over rail i mod rails.size().
struct HostChannels {
  FoundChannels rings;
  FoundChannels trees;
  std::vector<Rail> rails;
};

// A member of a ring that spans hosts.
struct SiteMember {
  std::size_t host = 0;  // in the graph
  int member = 0;        // of the host
  friend bool operator==(const SiteMember&, const SiteMember&) = default;
};

struct SiteChannels {
  std::vector<std::size_t> hosts;  // in the order in which rings pass them
  std::size_t channels = 0;        // the most that any of its hosts has
  // Channel i of a tree joins hosts by parents[i mod 2]: two trees, in which the inner hosts of one are mostly leaves of the
  // other.
  std::vector<TreeParents> trees;
  double ring_bytes_per_second = 0;  // of all its channels: the slowest host's ports or rings bind; 0: unknown
};

struct GraphChannels {
  std::vector<HostChannels> hosts;  // by host of the graph
  std::vector<std::size_t> like;    // by host: the first host with the same devices, which may be itself
  std::vector<SiteChannels> sites;  // by site of the graph
  SiteOrder order;                  // of the sites

  // The ring of one channel through all members of a site: each host's ring from the member at its rail.
  [[nodiscard]] std::vector<SiteMember> site_ring(std::size_t site, std::size_t channel) const;
};

// Pure. Hosts with equal devices have equal channels.
GraphChannels search_channels(const TopologyGraph& graph, const SearchLimits& limits = {});

// seconds_of_message() between all sites.
SiteCosts site_costs(const TopologyGraph& graph);

}  // namespace seto
