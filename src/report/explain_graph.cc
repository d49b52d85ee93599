#include "src/report/explain_graph.h"

#include <algorithm>
#include <utility>

#include "src/topology/graph/assumptions.h"
#include "src/topology/graph/graph_views.h"
#include "src/topology/graph/join_graphs.h"
#include "src/topology/search/rails.h"
#include "src/topology/search/site_order.h"

namespace seto {
namespace {

std::size_t members_of(const TopologyHost& host) { return std::max<std::size_t>(1, gpus_of(host).size()); }

// The tier between sites follows the link with the longest round trip, and the lowest rate that is known of any pair.
void use_links(const TopologyGraph& graph, GraphFacts& facts) {
  double longest = 0;
  double slowest = 0;
  TierOrigins& origins = facts.origins[static_cast<std::size_t>(TierKind::world)];
  for (std::size_t from = 0; from < graph.sites.size(); ++from)
    for (std::size_t to = 0; to < graph.sites.size(); ++to) {
      if (from == to) continue;
      const std::string pair = site_name(graph, from) + ">" + site_name(graph, to);
      const LinkFacts link = graph.between_sites.empty() ? LinkFacts() : graph.between_sites[from][to];
      if (const double round_trip = link.round_trip_s.value_or(0); round_trip > longest) {
        longest = round_trip;
        origins.link = pair;
        origins.latency = "half the round trip of " + pair + ", " + std::string(name_of(link.source));
      }
      const SiteRate rate = rate_between(graph, from, to);
      if (rate.bytes_per_second == 0 || (slowest > 0 && rate.bytes_per_second >= slowest)) continue;
      slowest = rate.bytes_per_second;
      origins.rate = pair + ", " + std::string(name_of(rate.source));
    }
  facts.costs.sites_are_stated = true;
  if (longest > 0) {
    facts.costs.world.latency_seconds = longest / 2;
    facts.costs.between_sites.round_trip_s = longest;
  }
  if (slowest > 0) {
    facts.costs.world.bytes_per_second = slowest;
    facts.costs.between_sites.bytes_per_second = slowest;
  } else if (longest > 0) {
    facts.costs.world.bytes_per_second = kAssumedBytesPerSecond;
    origins.rate = "assumed";
  }
}

// The tier between hosts follows the fabric, or the ports of the host that has the least of them for each rank.
void use_fabric(const TopologyGraph& graph, GraphFacts& facts) {
  TierOrigins& origins = facts.origins[static_cast<std::size_t>(TierKind::site)];
  double longest = 0;
  double least = 0;
  const auto consider = [&](double rate, const std::string& origin) {
    if (rate <= 0 || (least > 0 && rate >= least)) return;
    least = rate;
    origins.rate = origin;
  };
  for (std::size_t site = 0; site < graph.sites.size(); ++site) {
    const LinkFacts& fabric = graph.sites[site].fabric;
    const std::string name = "fabric of " + site_name(graph, site) + ", " + std::string(name_of(fabric.source));
    if (fabric.bytes_per_second) consider(*fabric.bytes_per_second, name);
    const double round_trip = fabric.round_trip_s.value_or(0);
    if (round_trip <= longest) continue;
    longest = round_trip;
    facts.costs.site.latency_seconds = longest / 2;
    origins.latency = "half the round trip, " + name;
  }
  for (const TopologyHost& host : graph.hosts) {
    const std::vector<PortPlace> places = ports_of(host);
    const std::vector<Rail> rails = rails_of(host);
    const bool assumed = std::any_of(rails.begin(), rails.end(), [&](const Rail& rail) {
      return places[rail.port].port->speed_source == FactSource::assumed;
    });
    consider(rate_of_all(rails) / static_cast<double>(members_of(host)),
             "ports of host " + (host.name.empty() ? std::string("without a name") : host.name) + " for each rank, " +
                 (assumed ? "assumed" : "file"));
  }
  if (least > 0) facts.costs.site.bytes_per_second = least;
}

double crowding_of(const TopologyGraph& graph) {
  double most = 1;
  for (const TopologyHost& host : graph.hosts) {
    std::size_t cores = 0;
    for (const NumaNode& node : host.nodes) cores += node.cores.count();
    if (cores > 0) most = std::max(most, static_cast<double>(members_of(host)) / static_cast<double>(cores));
  }
  return most;
}

std::string notes_of(const TopologyGraph& graph) {
  std::string text;
  for (const TopologyHost& host : graph.hosts)
    for (const std::string& note : host.notes)
      if (text.find(note) == std::string::npos) text.append(text.empty() ? "" : "; ").append(note);
  return text;
}

}  // namespace

Result<GraphFacts> facts_of_graph(TopologyGraph graph, int ranks, const CostModel& costs) {
  const int own = tiers_of(graph).ranks();
  if (ranks > kMostMadeUpRanks || ranks < 0)
    return failure(Code::invalid_argument, "ranks: %d is not one of 0 to %d", ranks, kMostMadeUpRanks);
  if (ranks % own != 0)
    return failure(Code::invalid_argument, "ranks: the hosts of the file have %d ranks; %d is not a multiple of that", own,
                   ranks);
  if (ranks > own) {
    SETO_ASSIGN(graph, join_graphs({{std::move(graph), "", static_cast<std::size_t>(ranks / own)}}));
  }
  assume_missing(graph);
  GraphFacts facts;
  facts.tiers = tiers_of(graph);
  facts.costs = costs;
  facts.costs.source = CostSource::file;
  for (TierOrigins& each : facts.origins) each = {std::string(name_of(costs.source)), std::string(name_of(costs.source)), {}};
  facts.crowding = crowding_of(graph);
  facts.notes = notes_of(graph);
  use_fabric(graph, facts);
  if (graph.sites.size() > 1) use_links(graph, facts);
  return facts;
}

}  // namespace seto
