#include "src/topology/draw/topology_text.h"

#include <array>
#include <cstddef>
#include <map>
#include <utility>

#include "src/topology/draw/channel_text.h"
#include "src/topology/draw/number_words.h"
#include "src/topology/graph/assumptions.h"
#include "src/topology/graph/graph_views.h"

namespace seto {
namespace {

std::string in_brackets(FactSource source) { return std::string(" [").append(name_of(source)).append("]"); }

std::string count_of(std::size_t count, const char* what) {
  return std::to_string(count).append(" ").append(what).append(count == 1 ? "" : "s");
}

class TreeText final {
 public:
  std::string write(const TopologyGraph& graph) {
    for (std::size_t i = 0; i < graph.sites.size(); ++i) site(graph, i);
    between(graph);
    tiers(graph);
    text_ += channels_text(graph, search_channels(graph));
    notes(graph);
    return std::move(text_);
  }

 private:
  void line(std::size_t depth, const std::string& words) { text_.append(2 * depth, ' ').append(words).append("\n"); }

  void link(std::size_t depth, const char* name, const LinkFacts& facts) {
    if (facts.known()) line(depth, std::string(name) + ": " + link_words(facts));
  }

  void site(const TopologyGraph& graph, std::size_t at) {
    const TopologySite& site = graph.sites[at];
    std::size_t hosts = 0;
    for (const TopologyHost& host : graph.hosts) hosts += host.site == at ? 1 : 0;
    line(0, "site " + (site.name.empty() ? std::to_string(at) : site.name) + ": " + count_of(hosts, "host"));
    link(1, "uplink", site.uplink);
    link(1, "downlink", site.downlink);
    link(1, "between its hosts", site.fabric);
    for (const TopologyHost& host : graph.hosts) {
      if (host.site != at) continue;
      const std::string name = "host " + (host.name.empty() ? std::string("without a name") : host.name);
      const std::string counts = count_of(host.nodes.size(), "NUMA node") + ", " + count_of(gpus_of(host).size(), "GPU") + ", " +
                                 count_of(ports_of(host).size(), "port");
      const std::string lines = lines_of(host);
      const auto [first, is_new] = first_with_lines_.emplace(lines, name);
      const bool is_told = !is_new && !host.name.empty();
      line(1, name + ": " + (is_told ? "as " + first->second : counts));
      if (!is_told) text_ += lines;
    }
  }

  std::string lines_of(const TopologyHost& host) {
    std::string before = std::exchange(text_, {});
    this->host(host);
    return std::exchange(text_, std::move(before));
  }

  void host(const TopologyHost& host) {
    if (all_joined_by_switches(host)) line(2, "all GPUs are joined by switches of GPU links");
    if (host.nodes.size() > 1) line(2, "between NUMA nodes: " + link_words(host.interconnect));
    for (const NumaNode& node : host.nodes) this->node(host, node);
  }

  void node(const TopologyHost& host, const NumaNode& node) {
    std::string words = "NUMA node " + (node.number < 0 ? std::string("without a number") : std::to_string(node.number));
    if (!node.cores.empty()) words += ": " + count_of(node.cores.count(), "core") + " (" + node.cores.ranges() + ")";
    if (!node.vendor.empty()) words += ", " + node.vendor;
    if (!node.arch.empty()) words += ", " + node.arch;
    line(2, words + in_brackets(node.source));
    for (const PciDevice& each : node.devices) device(host, each, 3);
    for (const NetPort& each : node.ports) port(each, 3);
  }

  void device(const TopologyHost& host, const PciDevice& device, std::size_t depth) {
    const char* kind = !device.gpus.empty()    ? "GPU"
                       : !device.ports.empty() ? "NIC"
                       : device.is_switch()    ? "PCI switch"
                                               : "PCI device";
    line(depth, std::string(kind) + " " + text_of(device.address) + in_brackets(device.source) + ", " + pci_words(device));
    for (const Gpu& each : device.gpus) gpu(host, device, each, depth + 1);
    for (const NetPort& each : device.ports) port(each, depth + 1);
    for (const PciAddress& target : device.peer_links) line(depth + 1, "also linked to " + text_of(target));
    for (const PciDevice& child : device.children) this->device(host, child, depth + 1);
  }

  static std::string pci_words(const PciDevice& device) {
    if (device.generation == 0 || device.lanes == 0) return "PCI link not known";
    return "PCI " + std::to_string(device.generation) + ".0 x" + std::to_string(device.lanes) + ": " + link_words(device.link());
  }

  void gpu(const TopologyHost& host, const PciDevice& device, const Gpu& gpu, std::size_t depth) {
    std::string words = gpu.dev < 0 ? "GPU" : "GPU " + std::to_string(gpu.dev);
    if (!gpu.product.empty()) words += ", " + gpu.product;
    if (gpu.sm >= 0) words += ", sm " + std::to_string(gpu.sm);
    if (!gpu.gcn.empty()) words += ", " + gpu.gcn;
    if (gpu.rank >= 0) words += ", rank " + std::to_string(gpu.rank);
    line(depth, words + in_brackets(gpu.source));
    for (const GpuLink& each : gpu.links) line(depth + 1, link_line(gpu, each, device.address));
    if (gpu.chip_link)
      line(depth + 1, "C2C to the CPU: " + rate_words(1e6 * gpu.chip_link->bandwidth_mb * gpu.chip_link->count) + " (file)");
    std::string near;
    for (const GpuPlace& place : gpus_of(host)) {
      if (place.gpu != &gpu) continue;
      for (const PortPlace& port : nearest_ports(host, place)) near += " " + (port.port->name.empty() ? "?" : port.port->name);
    }
    if (!near.empty()) line(depth + 1, "nearest ports:" + near);
  }

  static std::string link_line(const Gpu& gpu, const GpuLink& link, const PciAddress& own) {
    std::string words = std::to_string(link.count).append(" ").append(name_of(link.medium)).append(" to ");
    words += link.to_switch() ? "a switch" : link.target == own ? "itself" : "a GPU";
    if (link.target) words += " at " + text_of(*link.target);
    const auto rate = gpu_link_bytes_per_second(gpu);
    return words + (rate ? ": " + rate_words(link.count * *rate) + " (assumed of its model)" : "");
  }

  // A running host tells that the module is there; only a trial tells whether bytes pass (seto info gpus).
  static const char* gpu_words(const NetPort& port) {
    if (!port.gdr) return "";
    if (!*port.gdr) return ", no GPUDirect";
    return port.source == FactSource::file ? ", GPUDirect" : ", nvidia_peermem is loaded";
  }

  void port(const NetPort& port, std::size_t depth) {
    std::string words = "port " + (port.name.empty() ? std::string("without a name") : port.name);
    if (port.speed_mbit > 0)
      words += ": " + rate_words(port.speed_mbit * 1e6 / 8) + " (" + std::string(name_of(port.speed_source)) + ")";
    if (port.up) words += *port.up ? ", up" : ", down";
    if (port.mtu > 0) words += ", MTU " + std::to_string(port.mtu);
    if (port.default_route) words += ", default route";
    words += gpu_words(port);
    for (const std::string& address : port.addresses) words += ", " + address;
    line(depth, words + in_brackets(port.source));
    if (port.rdma.is_known()) rdma(port, depth + 1);
  }

  void rdma(const NetPort& port, std::size_t depth) {
    std::string words = "RDMA port " + std::to_string(port.port) + ", " + port.rdma.link_layer;
    if (!port.rdma.over.empty()) words += ", by software over " + port.rdma.over;
    if (port.rdma.gid) words += ", GID " + std::to_string(*port.rdma.gid) + " (" + port.rdma.gid_text + ")";
    line(depth, words + (port.rdma.why.empty() ? "" : ": " + port.rdma.why));
  }

  void between(const TopologyGraph& graph) {
    if (graph.sites.size() < 2) return;
    line(0, "links between sites:");
    for (std::size_t from = 0; from < graph.sites.size(); ++from)
      for (std::size_t to = 0; to < graph.sites.size(); ++to) {
        if (from == to) continue;
        const LinkFacts facts = graph.between_sites.empty() ? LinkFacts() : graph.between_sites[from][to];
        line(1, site_name(graph, from) + " to " + site_name(graph, to) + ": " + link_words(facts));
      }
  }

  void tiers(const TopologyGraph& graph) {
    static constexpr std::array<const char*, kMostTiers> kNames = {"node", "site", "world"};
    const Tiers tiers = tiers_of(graph);
    std::string words =
        "tiers, a rank for each GPU, or for each host without one: " + count_of(static_cast<std::size_t>(tiers.ranks()), "rank");
    for (int tier = 0; tiers.uniform() && tier < tiers.count(); ++tier)
      words += std::string(tier == 0 ? ", " : " x ") + kNames[static_cast<std::size_t>(tiers.kind(tier))] + " " +
               std::to_string(tiers.size(tier));
    line(0, words + (tiers.uniform() ? "" : ", in groups of different sizes"));
  }

  void notes(const TopologyGraph& graph) {
    bool first = true;
    for (const TopologyHost& host : graph.hosts)
      for (const std::string& note : host.notes) {
        if (first) line(0, "notes:");
        first = false;
        line(1, (host.name.empty() ? std::string() : host.name + ": ") + note);
      }
  }

  std::string text_;
  std::map<std::string, std::string> first_with_lines_;  // by the lines of a host: the first host that has them
};

}  // namespace

std::string topology_text(const TopologyGraph& graph) { return TreeText().write(graph); }

}  // namespace seto
