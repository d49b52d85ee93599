#include "src/topology/search/hop_graph.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "src/topology/graph/graph_views.h"

namespace seto {
namespace {

// Taken where neither the host nor a rule states a rate: a link of the first NVLink, 16 lanes of PCI 3, and the slowest
// interconnect that NCCL assumes.
constexpr double kUnknownGpuLink = 20e9;
constexpr double kUnknownPciLink = 15.75e9;
constexpr double kUnknownInterconnect = 6e9;

// The two directions of a link.
struct Ways {
  int up = 0;
  int down = 0;
};

// Makes the shared links of a host when a hop first needs them. Hops are made in a fixed order, so the numbers are, too.
class SharedLinks final {
 public:
  SharedLinks(HopGraph& graph, const TopologyHost& host, const std::vector<GpuPlace>& gpus)
      : graph_(graph), host_(host), gpus_(gpus) {}

  Hop hop(std::size_t from, std::size_t to) {
    const auto link = gpu_link(gpus_[from], gpus_[to]);
    if (!link) return pci_hop(from, to);
    if (link->medium == LinkMedium::nvswitch) return {HopKind::gpu_switch, {ports(from).up, ports(to).down}};
    return {HopKind::gpu_link, {graph_.add_shared(link->bytes_per_second.value_or(kUnknownGpuLink))}};
  }

 private:
  Ways made(double rate) {
    const int up = graph_.add_shared(rate);
    return {up, graph_.add_shared(rate)};
  }

  // All links between a GPU and the switches of GPU links.
  Ways ports(std::size_t gpu) {
    const auto known = ports_.find(gpu);
    if (known != ports_.end()) return known->second;
    return ports_[gpu] = made(gpu_bytes_per_second(gpus_[gpu]).value_or(kUnknownGpuLink));
  }

  Ways pci(const PciDevice* device) {
    const auto known = pci_.find(device->address);
    if (known != pci_.end()) return known->second;
    return pci_[device->address] = made(device->link().bytes_per_second.value_or(kUnknownPciLink));
  }

  int interconnect(const NumaNode* from, const NumaNode* to) {
    const std::pair key(from - host_.nodes.data(), to - host_.nodes.data());
    const auto known = interconnect_.find(key);
    if (known != interconnect_.end()) return known->second;
    return interconnect_[key] = graph_.add_shared(host_.interconnect.bytes_per_second.value_or(kUnknownInterconnect));
  }

  // Up from the sender to the device above both, and down to the receiver.
  Hop pci_hop(std::size_t from, std::size_t to) {
    const GpuPlace& sender = gpus_[from];
    const GpuPlace& receiver = gpus_[to];
    Hop hop{kind_of(distance(sender, receiver)), {}};
    std::size_t common = 0;
    if (sender.node == receiver.node)
      while (common < std::min(sender.path.size(), receiver.path.size()) && sender.path[common] == receiver.path[common])
        ++common;
    common = std::min({common, sender.path.size() - 1, receiver.path.size() - 1});  // two GPUs of one device share its link
    for (std::size_t i = sender.path.size(); i-- > common;) hop.shared.push_back(pci(sender.path[i]).up);
    if (sender.node != receiver.node) hop.shared.push_back(interconnect(sender.node, receiver.node));
    for (std::size_t i = common; i < receiver.path.size(); ++i) hop.shared.push_back(pci(receiver.path[i]).down);
    return hop;
  }

  static HopKind kind_of(PciDistance distance) {
    switch (distance) {
      case PciDistance::same_device:
      case PciDistance::one_switch:
        return HopKind::one_switch;
      case PciDistance::several_switches:
        return HopKind::several_switches;
      case PciDistance::same_node:
        return HopKind::same_node;
      case PciDistance::other_node:
        break;
    }
    return HopKind::other_node;
  }

  HopGraph& graph_;
  const TopologyHost& host_;
  const std::vector<GpuPlace>& gpus_;
  std::map<std::size_t, Ways> ports_;
  std::map<PciAddress, Ways> pci_;
  std::map<std::pair<std::ptrdiff_t, std::ptrdiff_t>, int> interconnect_;
};

}  // namespace

std::string_view name_of(HopKind kind) {
  static constexpr std::array<std::string_view, kHopKinds> kNames = {"GPU links",    "switches of GPU links", "one PCI switch",
                                                                     "PCI switches", "a NUMA node",           "the interconnect"};
  return kNames[static_cast<std::size_t>(kind)];
}

HopGraph HopGraph::of(const TopologyHost& host) {
  const std::vector<GpuPlace> gpus = gpus_of(host);
  HopGraph graph(std::max(1, static_cast<int>(gpus.size())));
  SharedLinks links(graph, host, gpus);
  for (std::size_t from = 0; from < gpus.size(); ++from)
    for (std::size_t to = 0; to < gpus.size(); ++to)
      if (from != to) graph.set_hop(static_cast<int>(from), static_cast<int>(to), links.hop(from, to));
  return graph;
}

int HopGraph::add_shared(double bytes_per_second) {
  shared_.push_back(bytes_per_second);
  return static_cast<int>(shared_.size()) - 1;
}

double HopGraph::outlet(int member, HopKind worst) const {
  std::vector<int> outlets;
  for (int to = 0; to < members_; ++to) {
    if (to == member || hop(member, to).kind > worst || hop(member, to).shared.empty()) continue;
    const int own = hop(member, to).shared.front();
    if (std::find(outlets.begin(), outlets.end(), own) == outlets.end()) outlets.push_back(own);
  }
  double sum = 0;
  for (const int one : outlets) sum += shared_[static_cast<std::size_t>(one)];
  return sum;
}

}  // namespace seto
