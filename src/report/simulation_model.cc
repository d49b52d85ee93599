#include "src/report/simulation_model.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "src/topology/draw/number_words.h"

namespace seto {
namespace {

// One fused step of one slice, measured: row `step` of ./dev bench host.
constexpr double kStepNs = 22;
// The processors at both ends take their parts of a latency.
void split_latency(SimulatedLink& link, double latency_seconds, double message_seconds) {
  const double message = std::min(message_seconds, latency_seconds / 2);
  link.message_ns = message * 1e9;
  link.latency_ns = (latency_seconds - 2 * message) * 1e9;
}

class Modelling final {
 public:
  explicit Modelling(const GraphFacts& facts) : graph_(facts.graph), homes_(facts.homes), hosts_(facts.hosts) {
    model_.tiers = facts.tiers;
    model_.costs = facts.costs;
    model_.crowding = facts.crowding;
    on_gpus_ = facts.on_gpus;
    stated_ = facts.assumptions;
    if (!facts.unused_tuning.empty()) stated_.push_back(facts.unused_tuning);
    if (!facts.notes.empty()) stated_.push_back("guessed or not found: " + facts.notes);
  }

  SimulationModel model() && {
    add_memory();
    add_fabric();
    add_sites();
    model_.assumptions.insert(model_.assumptions.end(), stated_.begin(), stated_.end());
    model_.machine.link = link_function();
    return std::move(model_);
  }

 private:
  struct Pair {  // of sites
    double round_trip_s = 0;
    double socket_bytes_per_second = 0;
  };

  void assume(std::string text) { model_.assumptions.push_back(std::move(text)); }
  [[nodiscard]] const Home& home(Rank rank) const { return homes_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::uint32_t wire(Rank rank, std::uint32_t port) const { return static_cast<std::uint32_t>(rank) * 4 + port; }
  [[nodiscard]] std::uint32_t host_wire(std::uint32_t host, std::uint32_t port) const {
    return static_cast<std::uint32_t>(homes_.size()) * 4 + host * 2 + port;
  }
  [[nodiscard]] bool has_gpus(std::uint32_t host) const { return hosts_[host].gpu_bytes_per_second > 0; }
  [[nodiscard]] std::string host_name(std::uint32_t host) const {
    const std::string& name = graph_.hosts[host].name;
    return name.empty() ? "host " + std::to_string(host) : name;
  }
  [[nodiscard]] std::string site_name(std::size_t site) const {
    const std::string& name = graph_.sites[site].name;
    return name.empty() ? "site " + std::to_string(site) : name;
  }

  void add_memory() {
    SimulatedMachine& machine = model_.machine;
    machine.step_ns = kStepNs;
    if (on_gpus_) {
      machine.pass_ns_per_byte = 1e9 / kGpuMemoryBytesPerSecond;
      machine.code_ns_per_byte = 0;  // in the same pass
      assume("GPU memory: " + rate_words(kGpuMemoryBytesPerSecond) + ", a hop between GPUs: " + time_words(kGpuHopSeconds) +
             " (data sheet of an H100); neither encoding nor sending a message costs anything beside the pass through memory");
      return;
    }
    machine.code_ns_per_byte = 1e9 / model_.costs.codec_bytes_per_second;
    machine.pass_ns_per_byte = 1e9 / (2 * model_.costs.node.bytes_per_second);
    assume("within a host: a hop takes " + time_words(model_.costs.node.latency_seconds) + ", a copy runs at " +
           rate_words(model_.costs.node.bytes_per_second) + " (constants of choice)");
    if (model_.costs.site.message_seconds > 0)
      assume("beyond a host: a message takes " + time_words(model_.costs.site.message_seconds) +
             " of the core at each end, within its hop (constant of choice)");
    add_cores();
  }

  // Ranks take turns on the cores of a host that has fewer of them.
  void add_cores() {
    if (model_.crowding <= 1) return;
    std::size_t fewest = 0;
    for (const HostLinks& host : hosts_)
      if (host.cores > 0 && host.ranks > 0) fewest = fewest == 0 ? host.cores : std::min(fewest, host.cores);
    for (const Home& one : homes_) model_.machine.node_of.push_back(one.node);
    model_.machine.cores_per_node = static_cast<std::uint32_t>(fewest);
  }

  void add_ports(std::uint32_t host, double rate) {
    if (hosts_[host].has_rails) return;
    model_.wires[host_wire(host, 0)] = {"host, sending", host_name(host), rate};
    model_.wires[host_wire(host, 1)] = {"host, receiving", host_name(host), rate};
  }

  void add_fabric() {
    for (std::uint32_t host = 0; host < hosts_.size(); ++host) add_ports(host, hosts_[host].bytes_per_second);
    for (const TopologySite& site : graph_.sites)
      latencies_.push_back(site.fabric.round_trip_s.value_or(2 * model_.costs.site.latency_seconds) / 2);
    for (Rank rank = 0; rank < model_.tiers.ranks(); ++rank) add_rank(rank);
  }

  void add_rank(Rank rank) {
    const std::uint32_t host = home(rank).node;
    const std::string name = "rank " + std::to_string(rank);
    if (has_gpus(host)) {
      model_.wires[wire(rank, 0)] = {"GPU links, sending", name, hosts_[host].gpu_bytes_per_second};
      model_.wires[wire(rank, 1)] = {"GPU links, receiving", name, hosts_[host].gpu_bytes_per_second};
    }
    if (!hosts_[host].has_rails) return;
    model_.wires[wire(rank, 2)] = {"NICs of a rank, sending", name, rail_rate(host)};
    model_.wires[wire(rank, 3)] = {"NICs of a rank, receiving", name, rail_rate(host)};
  }
  [[nodiscard]] double rail_rate(std::uint32_t host) const {
    return hosts_[host].bytes_per_second / std::max(1, hosts_[host].ranks);
  }

  std::optional<std::uint32_t> add_shared(const char* kind, const std::string& name, const LinkFacts& facts) {
    if (!facts.bytes_per_second || !(*facts.bytes_per_second > 0)) return std::nullopt;
    model_.shared.push_back({kind, name, *facts.bytes_per_second});
    model_.machine.shared_bytes_per_ns.push_back(*facts.bytes_per_second * 1e-9);
    return static_cast<std::uint32_t>(model_.shared.size() - 1);
  }

  void add_sites() {
    const std::size_t sites = graph_.sites.size();
    std::vector<std::optional<std::uint32_t>> up, down;
    for (std::size_t site = 0; site < sites && sites > 1; ++site) {
      up.push_back(add_shared("uplink", site_name(site), graph_.sites[site].uplink));
      down.push_back(add_shared("downlink", site_name(site), graph_.sites[site].downlink));
    }
    pairs_.resize(sites * sites);
    for (std::size_t from = 0; from < sites; ++from)
      for (std::size_t to = 0; to < sites; ++to) {
        std::vector<std::uint32_t>& way = model_.machine.shared_ways.emplace_back();
        if (from == to) continue;
        const LinkFacts& facts = graph_.between_sites[from][to];
        if (up[from]) way.push_back(*up[from]);
        if (const auto link = add_shared("between sites", site_name(from) + " > " + site_name(to), facts)) way.push_back(*link);
        if (down[to]) way.push_back(*down[to]);
        pairs_[from * sites + to] = {facts.round_trip_s.value_or(0), facts.socket_bytes_per_second.value_or(0)};
      }
  }

  // Copies what it needs, because the function outlives this object.
  std::function<SimulatedLink(Rank, Rank)> link_function() const {
    return [homes = std::vector<Home>(homes_), hosts = std::vector<HostLinks>(hosts_), latencies = latencies_, pairs = pairs_,
            costs = model_.costs, sites = graph_.sites.size()](Rank from, Rank to) {
      const Home& left = homes[static_cast<std::size_t>(from)];
      const Home& right = homes[static_cast<std::size_t>(to)];
      const auto rank_wires = static_cast<std::uint32_t>(homes.size()) * 4;
      SimulatedLink link;
      link.wire = static_cast<std::uint32_t>(from) * 4;
      link.far_wire = static_cast<std::uint32_t>(to) * 4 + 1;
      if (left.node == right.node) {
        split_latency(link, costs.node.latency_seconds, costs.node.message_seconds);
        link.written_once = true;
        const double rate = hosts[left.node].gpu_bytes_per_second;
        link.ns_per_byte = rate > 0 ? 1e9 / rate : 0;  // without GPUs the bytes pass through memory, which the steps count
        return link;
      }
      const auto rate_of = [&](std::uint32_t host) {
        return hosts[host].bytes_per_second / (hosts[host].has_rails ? std::max(1, hosts[host].ranks) : 1);
      };
      link.wire = hosts[left.node].has_rails ? link.wire + 2 : rank_wires + left.node * 2;
      link.far_wire = hosts[right.node].has_rails ? link.far_wire + 2 : rank_wires + right.node * 2 + 1;
      link.ns_per_byte = 1e9 / std::min(rate_of(left.node), rate_of(right.node));
      split_latency(link, latencies[left.site], costs.site.message_seconds);
      if (left.site == right.site) return link;
      const Pair& pair = pairs[left.site * sites + right.site];
      split_latency(link, pair.round_trip_s / 2, costs.world.message_seconds);
      link.shared_way = static_cast<std::uint32_t>(left.site * sites + right.site);
      link.most_bytes_per_ns = pair.socket_bytes_per_second * 1e-9;  // of one socket; limit() counts them
      return link;
    };
  }

  const TopologyGraph& graph_;
  const std::vector<Home>& homes_;       // by rank
  const std::vector<HostLinks>& hosts_;  // by host
  bool on_gpus_ = false;
  std::vector<std::string> stated_;  // assumptions of the facts
  std::vector<double> latencies_;    // within each site, in seconds
  std::vector<Pair> pairs_;          // by site and site
  SimulationModel model_;
};

}  // namespace

SimulationModel model_of(const GraphFacts& facts) { return Modelling(facts).model(); }

void limit(SimulationModel& model, const FarPairs& pairs) {
  model.machine.link = [free = std::move(model.machine.link), pairs](Rank from, Rank to) {
    SimulatedLink link = free(from, to);
    if (link.shared_way == kNoWire) return link;
    link.window_bytes = pairs.window_bytes;
    link.most_bytes_per_ns *= std::max(1U, pairs.sockets);
    return link;
  };
}

}  // namespace seto
