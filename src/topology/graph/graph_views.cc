#include "src/topology/graph/graph_views.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "src/topology/graph/assumptions.h"

namespace seto {
namespace {

// Calls action(path) for every device below, parents first.
template <class Action>
void walk(const std::vector<PciDevice>& devices, std::vector<const PciDevice*>& path, const Action& action) {
  for (const PciDevice& device : devices) {
    path.push_back(&device);
    action(path);
    walk(device.children, path, action);
    path.pop_back();
  }
}

bool leads_elsewhere(const GpuLink& link, const PciAddress& own) { return !link.target || *link.target != own; }

// The number of links to the target, or to switches.
int links_to(const GpuPlace& from, const PciAddress& target) {
  int count = 0;
  for (const GpuLink& link : from.gpu->links)
    if (!link.to_switch() && link.target == target) count += link.count;
  return count;
}

int links_to_switches(const GpuPlace& from) {
  int count = 0;
  for (const GpuLink& link : from.gpu->links)
    if (link.to_switch()) count += link.count;
  return count;
}

// True if both have links to a common switch. A hidden switch is taken to be the same for both.
bool share_switch(const GpuPlace& left, const GpuPlace& right) {
  for (const GpuLink& mine : left.gpu->links)
    for (const GpuLink& other : right.gpu->links)
      if (mine.to_switch() && other.to_switch() && mine.target == other.target) return true;
  return false;
}

}  // namespace

std::vector<GpuPlace> gpus_of(const TopologyHost& host) {
  std::vector<GpuPlace> found;
  std::vector<const PciDevice*> path;
  for (const NumaNode& node : host.nodes)
    walk(node.devices, path, [&](const std::vector<const PciDevice*>& here) {
      for (const Gpu& gpu : here.back()->gpus) found.push_back({{&node, here}, &gpu});
    });
  return found;
}

std::vector<PortPlace> ports_of(const TopologyHost& host) {
  std::vector<PortPlace> found;
  std::vector<const PciDevice*> path;
  for (const NumaNode& node : host.nodes) {
    walk(node.devices, path, [&](const std::vector<const PciDevice*>& here) {
      for (const NetPort& port : here.back()->ports) found.push_back({{&node, here}, &port});
    });
    for (const NetPort& port : node.ports) found.push_back({{&node, {}}, &port});
  }
  return found;
}

PciDistance distance(const DevicePlace& left, const DevicePlace& right) {
  if (left.node != right.node) return PciDistance::other_node;
  std::size_t common = 0;
  while (common < left.path.size() && common < right.path.size() && left.path[common] == right.path[common]) ++common;
  if (common == 0) return PciDistance::same_node;
  if (common == left.path.size() && common == right.path.size()) return PciDistance::same_device;
  const bool direct = common + 1 == left.path.size() && common + 1 == right.path.size();
  return direct ? PciDistance::one_switch : PciDistance::several_switches;
}

std::vector<PortPlace> nearest_ports(const TopologyHost& host, const GpuPlace& gpu) {
  std::vector<PortPlace> nearest;
  PciDistance least = PciDistance::other_node;
  for (PortPlace& port : ports_of(host)) {
    const PciDistance here = distance(gpu, port);
    if (here < least) nearest.clear();
    if (here <= least) nearest.push_back(std::move(port));
    least = std::min(least, here);
  }
  return nearest;
}

std::optional<LinkFacts> gpu_link(const GpuPlace& from, const GpuPlace& to) {
  const int direct = links_to(from, to.path.back()->address);
  const int switched = share_switch(from, to) ? std::min(links_to_switches(from), links_to_switches(to)) : 0;
  if (direct == 0 && switched == 0) return std::nullopt;
  const bool is_xgmi = !from.gpu->links.empty() && from.gpu->links.front().medium == LinkMedium::xgmi;
  LinkFacts facts{.medium = direct < switched ? LinkMedium::nvswitch : is_xgmi ? LinkMedium::xgmi : LinkMedium::nvlink};
  if (const auto rate = gpu_link_bytes_per_second(*from.gpu)) facts.bytes_per_second = std::max(direct, switched) * *rate;
  return facts;
}

std::optional<double> gpu_bytes_per_second(const GpuPlace& gpu) {
  int count = 0;
  for (const GpuLink& link : gpu.gpu->links)
    if (leads_elsewhere(link, gpu.path.back()->address)) count += link.count;
  const auto rate = gpu_link_bytes_per_second(*gpu.gpu);
  return rate && count > 0 ? std::optional(count * *rate) : std::nullopt;
}

bool all_joined_by_switches(const TopologyHost& host) {
  const std::vector<GpuPlace> gpus = gpus_of(host);
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (!share_switch(gpus[i], gpus[j])) return false;
  return gpus.size() > 1;
}

SiteRate rate_between(const TopologyGraph& graph, std::size_t from, std::size_t to) {
  SiteRate least;
  const auto consider = [&least](const LinkFacts& facts) {
    const double rate = facts.bytes_per_second.value_or(0);
    if (rate > 0 && (least.bytes_per_second == 0 || rate < least.bytes_per_second)) least = {rate, facts.source};
  };
  if (!graph.between_sites.empty()) consider(graph.between_sites[from][to]);
  consider(graph.sites[from].uplink);
  consider(graph.sites[to].downlink);
  return least;
}

std::string site_name(const TopologyGraph& graph, std::size_t site) {
  return graph.sites[site].name.empty() ? std::to_string(site) : graph.sites[site].name;
}

std::vector<Home> homes_of(const TopologyGraph& graph) {
  std::vector<std::pair<int, Home>> numbered;
  for (std::size_t host = 0; host < graph.hosts.size(); ++host) {
    const Home home{static_cast<std::uint32_t>(host), static_cast<std::uint32_t>(graph.hosts[host].site)};
    const std::vector<GpuPlace> gpus = gpus_of(graph.hosts[host]);
    for (const GpuPlace& place : gpus) numbered.emplace_back(place.gpu->rank, home);
    if (gpus.empty()) numbered.emplace_back(-1, home);
  }
  std::vector<std::pair<int, Home>> sorted = numbered;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& left, const auto& right) { return left.first < right.first; });
  bool usable = !sorted.empty() && sorted.front().first >= 0;
  for (std::size_t i = 1; i < sorted.size(); ++i) usable = usable && sorted[i - 1].first != sorted[i].first;
  std::vector<Home> homes;
  for (const auto& [rank, home] : usable ? sorted : numbered) homes.push_back(home);
  return homes;
}

Tiers tiers_of(const TopologyGraph& graph) {
  const std::vector<Home> homes = homes_of(graph);
  return homes.empty() ? Tiers::flat(1) : Tiers::of(homes);
}

}  // namespace seto
