#include "src/report/graph_facts.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "src/topology/draw/number_words.h"
#include "src/topology/graph/assumptions.h"
#include "src/topology/graph/graph_views.h"
#include "src/topology/graph/join_graphs.h"
#include "src/topology/search/rails.h"

namespace seto {
namespace {

constexpr double kBytesOfMbit = 125e3;

// The homes of the ranks. Adds copies of the hosts to the graph if the ranks need more GPUs.
Result<std::vector<Home>> place(TopologyGraph& graph, int ranks) {
  if (graph.hosts.empty()) return failure(Code::invalid_argument, "the topology has no host");
  if (ranks < 0 || ranks > kMostMadeUpRanks)
    return failure(Code::invalid_argument, "ranks: %d is not one of 0 to %d", ranks, kMostMadeUpRanks);
  if (ranks == 0) return homes_of(graph);
  const std::size_t hosts = graph.hosts.size();
  if (static_cast<std::size_t>(ranks) < hosts)
    return failure(Code::invalid_argument, "ranks: %d are fewer than the %zu hosts of the topology, and each host needs one",
                   ranks, hosts);
  if (std::any_of(graph.hosts.begin(), graph.hosts.end(), [](const TopologyHost& host) { return !gpus_of(host).empty(); })) {
    const int own = static_cast<int>(homes_of(graph).size());
    if (ranks % own != 0)
      return failure(Code::invalid_argument, "ranks: the hosts of the file have %d ranks; %d is not a multiple of that", own,
                     ranks);
    if (ranks > own) {
      SETO_ASSIGN(graph, join_graphs({{std::move(graph), "", static_cast<std::size_t>(ranks / own)}}));
    }
    return homes_of(graph);
  }
  std::vector<Home> homes;
  for (std::size_t host = 0; host < hosts; ++host)
    while (homes.size() < static_cast<std::size_t>(ranks) * (host + 1) / hosts)
      homes.push_back({static_cast<std::uint32_t>(host), static_cast<std::uint32_t>(graph.hosts[host].site)});
  return homes;
}

// 0: not known.
double lower_of(double one, double other) { return one == 0 || (other > 0 && other < one) ? other : one; }

class FactFinding final {
 public:
  FactFinding(GraphFacts& facts, const CostModel& costs) : facts_(facts), graph_(facts.graph), own_(costs) {
    facts_.costs = costs;
    facts_.costs.source = CostSource::file;
    facts_.costs.sites_are_stated = true;
    const std::string source = own_source();
    for (TierOrigins& each : facts_.origins) each = {source, source, {}};
  }

  void find(PortRates of_sites) {
    find_hosts();
    find_memory();
    if (graph_.hosts.size() > 1) find_fabric();
    if (graph_.sites.size() > 1) find_sites(of_sites);
    if (const std::string unused = unused_constants(own_, facts_.costs); own_.source == CostSource::file && !unused.empty())
      facts_.unused_tuning = "SETO_TUNING_FILE: not used: " + unused + "; the topology file states what these follow from";
    for (const TopologyHost& host : graph_.hosts)
      for (const std::string& note : host.notes)
        if (facts_.notes.find(note) == std::string::npos) facts_.notes.append(facts_.notes.empty() ? "" : "; ").append(note);
  }

 private:
  // A file of constants is not the file of the topology.
  [[nodiscard]] std::string own_source() const {
    return own_.source == CostSource::file ? "SETO_TUNING_FILE" : std::string(name_of(own_.source));
  }
  void assume(const std::string& text) {
    if (std::find(facts_.assumptions.begin(), facts_.assumptions.end(), text) == facts_.assumptions.end())
      facts_.assumptions.push_back(text);
  }
  [[nodiscard]] TierOrigins& origins(TierKind kind) { return facts_.origins[static_cast<std::size_t>(kind)]; }

  void find_hosts() {
    for (const TopologyHost& host : graph_.hosts) {
      HostLinks& links = facts_.hosts.emplace_back();
      const std::vector<Rail> rails = rails_of(host);
      const std::vector<GpuPlace> gpus = gpus_of(host);
      links.has_rails = rails.size() > 1 && !gpus.empty();
      for (const GpuPlace& place : gpus)
        links.gpu_bytes_per_second = lower_of(links.gpu_bytes_per_second, gpu_bytes_per_second(place).value_or(0));
      for (const NumaNode& node : host.nodes) links.cores += node.cores.count();
      take_rate(links, host, rails);
    }
    for (const Home& home : facts_.homes) ++facts_.hosts[home.node].ranks;
    facts_.on_gpus =
        std::all_of(facts_.hosts.begin(), facts_.hosts.end(), [](const HostLinks& one) { return one.gpu_bytes_per_second > 0; });
  }

  // The fabric between hosts if its rate is stated, else all usable ports of the host.
  void take_rate(HostLinks& links, const TopologyHost& host, const std::vector<Rail>& rails) {
    const LinkFacts& fabric = graph_.sites[host.site].fabric;
    links.bytes_per_second = fabric.bytes_per_second.value_or(rate_of_all(rails));
    if (fabric.bytes_per_second) {
      links.rate_origin = "fabric of " + site_name(graph_, host.site) + ", " + std::string(name_of(fabric.source));
    } else if (links.bytes_per_second > 0) {
      const std::vector<PortPlace> places = ports_of(host);
      const bool assumed = std::any_of(rails.begin(), rails.end(), [&](const Rail& rail) {
        return places[rail.port].port->speed_source == FactSource::assumed;
      });
      links.rate_origin = "ports of host " + (host.name.empty() ? std::string("without a name") : host.name) + ", " +
                          (assumed ? "assumed" : "file");
    } else {
      links.bytes_per_second = own_.site.bytes_per_second;
      links.rate_origin = own_source();
      if (graph_.hosts.size() > 1)
        assume("between hosts of a site: " + rate_words(links.bytes_per_second) + " (constant of choice)");
    }
  }

  // Ranks on GPUs have their memory and links, as if the engine ran there. Others share the memory and the cores of their hosts.
  void find_memory() {
    CostModel& costs = facts_.costs;
    if (facts_.on_gpus) {
      const auto slowest = std::min_element(
          facts_.hosts.begin(), facts_.hosts.end(),
          [](const HostLinks& one, const HostLinks& other) { return one.gpu_bytes_per_second < other.gpu_bytes_per_second; });
      costs.node = {kGpuHopSeconds, slowest->gpu_bytes_per_second};
      costs.site.message_seconds = costs.world.message_seconds = 0;
      costs.codec_bytes_per_second = kGpuMemoryBytesPerSecond;  // in the pass that reads the numbers
      origins(TierKind::node) = {"data sheet of an H100", "GPU links, data sheet", {}};
      return;
    }
    for (const HostLinks& host : facts_.hosts)
      if (host.cores > 0 && host.ranks > 0)
        facts_.crowding = std::max(facts_.crowding, static_cast<double>(host.ranks) / static_cast<double>(host.cores));
  }

  // The tier between hosts follows the longest round trip, and the host that has the lowest rate for each of its ranks.
  void find_fabric() {
    TierCost& cost = facts_.costs.site;
    double longest = 0;
    for (std::size_t site = 0; site < graph_.sites.size(); ++site) {
      LinkFacts& fabric = graph_.sites[site].fabric;
      const bool is_stated = fabric.round_trip_s.value_or(0) > 0;
      if (!is_stated) fabric.round_trip_s = 2 * own_.site.latency_seconds;
      if (!is_stated && facts_.tiers.count() > 1)
        assume("between hosts of a site: a hop takes " + time_words(own_.site.latency_seconds) + " (constant of choice)");
      if (*fabric.round_trip_s <= longest) continue;
      longest = *fabric.round_trip_s;
      origins(TierKind::site).latency =
          is_stated ? "half the round trip, fabric of " + site_name(graph_, site) + ", " + std::string(name_of(fabric.source))
                    : own_source();
    }
    cost.latency_seconds = longest / 2;
    double least = std::numeric_limits<double>::infinity();
    for (const HostLinks& host : facts_.hosts) {
      const double share = host.bytes_per_second / std::max(1, host.ranks);
      if (share >= least) continue;
      least = share;
      origins(TierKind::site).rate = host.rate_origin + (host.ranks > 1 ? ", for each rank of a host" : "");
    }
    cost.bytes_per_second = least;
  }

  // The tier between sites follows the link with the longest round trip, and the lowest rate of any pair.
  void find_sites(PortRates of_sites) {
    for (TopologySite& site : graph_.sites) {
      const auto fill = [this](LinkFacts& link, double rate) {
        if (link.bytes_per_second || rate == 0) return;
        link.bytes_per_second = rate;
        assume("sites without a rate in the file: SETO_SITE_UPLINK_MBIT and SETO_SITE_DOWNLINK_MBIT");
      };
      fill(site.uplink, of_sites.up);
      fill(site.downlink, of_sites.down);
    }
    double longest = 0;
    double slowest = std::numeric_limits<double>::infinity();
    double slowest_socket = 0;
    for (std::size_t from = 0; from < graph_.sites.size(); ++from)
      for (std::size_t to = 0; to < graph_.sites.size(); ++to) {
        if (from == to) continue;
        take_round_trip(from, to, longest);
        const double of_a_socket = graph_.between(from, to).socket_bytes_per_second.value_or(0);
        if (of_a_socket > 0) slowest_socket = lower_of(slowest_socket, of_a_socket);
        take_pair_rate(from, to, slowest);
      }
    CostModel& costs = facts_.costs;
    costs.world.latency_seconds = longest / 2;
    costs.world.bytes_per_second = slowest;
    costs.between_sites.round_trip_s = longest;
    costs.between_sites.bytes_per_second = slowest;
    if (slowest_socket > 0) costs.between_sites.socket_bytes_per_second = slowest_socket;
    take_ports();
    take_ring();
  }

  // The ring of sites, where each site has ranks, so that sites are the members of the outermost tier.
  void take_ring() {
    const auto sites = static_cast<std::uint32_t>(graph_.sites.size());
    const Tiers& tiers = facts_.tiers;
    if (tiers.widest() != TierKind::world || tiers.size(tiers.count() - 1) != static_cast<int>(sites)) return;
    SiteLinks links(sites);
    for (std::uint32_t from = 0; from < sites; ++from)
      for (std::uint32_t to = 0; to < sites; ++to) {
        if (from == to) continue;
        LinkFacts link = graph_.between(from, to);
        link.bytes_per_second = rate_between(graph_, from, to).bytes_per_second;
        (void)links.add({0, from, to, link});
      }
    facts_.costs.ring = ring_of(links);
    facts_.tiers.take_ring(facts_.costs.ring.order);
  }

  [[nodiscard]] std::string name_of_pair(std::size_t from, std::size_t to) const {
    return site_name(graph_, from) + ">" + site_name(graph_, to);
  }

  void take_round_trip(std::size_t from, std::size_t to, double& longest) {
    LinkFacts& link = graph_.between(from, to);
    const bool is_stated = link.round_trip_s.value_or(0) > 0;
    if (!is_stated) {
      link.round_trip_s = 2 * own_.world.latency_seconds;
      assume("between sites: a round trip of " + time_words(*link.round_trip_s));
    }
    if (*link.round_trip_s <= longest) return;
    longest = *link.round_trip_s;
    TierOrigins& origin = origins(TierKind::world);
    origin.link = name_of_pair(from, to);
    origin.latency =
        is_stated ? "half the round trip of " + origin.link + ", " + std::string(name_of(link.source)) : own_source();
  }

  void take_pair_rate(std::size_t from, std::size_t to, double& slowest) {
    SiteRate rate = rate_between(graph_, from, to);
    std::string source(name_of(rate.source));
    if (rate.bytes_per_second == 0) {
      rate.bytes_per_second = own_.source == CostSource::file ? own_.world.bytes_per_second : kAssumedBytesPerSecond;
      graph_.between(from, to).bytes_per_second = rate.bytes_per_second;
      source = "assumed";
      assume("between sites: " + rate_words(rate.bytes_per_second) + " each way");
    }
    if (rate.bytes_per_second >= slowest) return;
    slowest = rate.bytes_per_second;
    origins(TierKind::world).rate = name_of_pair(from, to) + ", " + source;
  }

  // The rates of each site, as ranks of a job would state them. A site is no faster than its links to the others together.
  void take_ports() {
    std::vector<PortRates> ports;
    for (std::size_t site = 0; site < graph_.sites.size(); ++site) {
      const double up = graph_.sites[site].uplink.bytes_per_second.value_or(0);
      const double down = graph_.sites[site].downlink.bytes_per_second.value_or(0);
      PortRates port{up > 0 ? up : down, down > 0 ? down : up};
      PortRates links;
      for (std::size_t other = 0; other < graph_.sites.size(); ++other) {
        if (other == site) continue;
        const double unlimited = std::numeric_limits<double>::infinity();
        links.up += graph_.between(site, other).bytes_per_second.value_or(unlimited);
        links.down += graph_.between(other, site).bytes_per_second.value_or(unlimited);
      }
      if (port.up > 0) port.up = std::min(port.up, links.up);
      if (port.down > 0) port.down = std::min(port.down, links.down);
      ports.push_back(port);
    }
    facts_.tiers.take_rates(std::move(ports));
  }

  GraphFacts& facts_;
  TopologyGraph& graph_;
  const CostModel own_;
};

}  // namespace

PortRates site_rates_of(const Config& config) {
  const double up = static_cast<double>(config.site_uplink_mbit) * kBytesOfMbit;
  const double down = static_cast<double>(config.site_downlink_mbit) * kBytesOfMbit;
  return {up > 0 ? up : down, down > 0 ? down : up};
}

Result<GraphFacts> facts_of_graph(TopologyGraph graph, int ranks, const CostModel& costs, PortRates of_sites) {
  GraphFacts facts;
  SETO_ASSIGN(facts.homes, place(graph, ranks));
  assume_missing(graph);
  facts.graph = std::move(graph);
  facts.tiers = Tiers::of(facts.homes);
  FactFinding(facts, costs).find(of_sites);
  return facts;
}

}  // namespace seto
