#include "src/topology/draw/topology_svg.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "src/topology/draw/channel_rows.h"
#include "src/topology/draw/number_words.h"
#include "src/topology/draw/svg_canvas.h"
#include "src/topology/graph/graph_views.h"
#include "src/topology/search/graph_search.h"

namespace seto {
namespace {

constexpr double kCell = 88;     // the width of a GPU or a NIC
constexpr double kRow = 34;      // its height
constexpr double kGap = 10;      // between boxes
constexpr double kHeading = 22;  // above the boxes of a host or a site
constexpr double kLinkRow = 24;  // for an arrow between sites
constexpr std::size_t kMostHostsOfSite = 8;
constexpr std::size_t kMostArrows = 40;

constexpr const char* kSiteFill = "#f4f6f8";
constexpr const char* kHostFill = "#ffffff";
constexpr const char* kNodeFill = "#fbf7ee";
constexpr const char* kGpuFill = "#d5efd9";
constexpr const char* kNicFill = "#d6e6f7";
constexpr const char* kSwitchFill = "#e6e6e6";
constexpr const char* kLinkSwitchFill = "#c6e6d0";
constexpr const char* kRailColour = "#1565c0";

// A tree below a NUMA node as a column: GPUs above its switch, NICs below.
struct Column {
  const PciDevice* root = nullptr;  // null: interfaces without a PCI device
  std::vector<const PciDevice*> gpus, nics;
  std::vector<const NetPort*> loose_ports;

  [[nodiscard]] double width() const {
    const std::size_t cells = std::max({gpus.size(), nics.size(), loose_ports.size(), std::size_t{1}});
    return static_cast<double>(cells) * (kCell + kGap) - kGap;
  }
};

void collect(const PciDevice& device, Column& column) {
  if (!device.gpus.empty()) column.gpus.push_back(&device);
  if (!device.ports.empty()) column.nics.push_back(&device);
  for (const PciDevice& child : device.children) collect(child, column);
}

std::vector<Column> columns_of(const NumaNode& node) {
  std::vector<Column> columns;
  for (const PciDevice& device : node.devices) {
    Column column;
    column.root = &device;
    collect(device, column);
    if (!column.gpus.empty() || !column.nics.empty()) columns.push_back(std::move(column));
  }
  if (!node.ports.empty() || columns.empty()) {
    Column column;
    for (const NetPort& port : node.ports) column.loose_ports.push_back(&port);
    columns.push_back(std::move(column));
  }
  return columns;
}

double width_of(const NumaNode& node) {
  double width = kGap;
  for (const Column& column : columns_of(node)) width += column.width() + kGap;
  return width;
}

double width_of(const TopologyHost& host) {
  double width = kGap;
  for (const NumaNode& node : host.nodes) width += width_of(node) + kGap;
  return std::max(width, 260.0);
}

// Heading, rows of rings and trees, switch of GPU links or arcs, then a NUMA node: GPUs, PCI switch, NICs, its name below them.
constexpr double kLinkSpace = kRow + kGap;
constexpr double kNodeHeight = 3 * (kRow + kGap) + kHeading;
constexpr double kHostHeight = kHeading + kLinkSpace + kNodeHeight + kGap;

class Drawing final {
 public:
  explicit Drawing(const TopologyGraph& graph) : graph_(graph), channels_(search_channels(graph)) {}

  std::string write() {
    const TopologyGraph& graph = graph_;
    double x = kGap;
    double bottom = 0;
    for (std::size_t i = 0; i < graph.sites.size(); ++i) {
      const SvgBox box = site(graph, i, x);
      centres_.push_back(box.middle());
      x += box.width + 3 * kGap;
      bottom = std::max(bottom, box.bottom());
    }
    bottom = arrows(graph, bottom + 2 * kGap);
    canvas_.left_text(kGap, bottom + 16, "dashed: assumed, not stated by the machine or a file");
    canvas_.left_text(kGap, bottom + 32, "blue frame: a port that channels use; blue line: to the GPU beside it", false,
                      kRailColour);
    return canvas_.document(std::max(x, 420.0), bottom + 44);
  }

 private:
  SvgBox site(const TopologyGraph& graph, std::size_t at, double x) {
    std::vector<std::size_t> hosts;
    for (std::size_t i = 0; i < graph.hosts.size(); ++i)
      if (graph.hosts[i].site == at) hosts.push_back(i);
    const std::size_t drawn = std::min(hosts.size(), kMostHostsOfSite);
    SvgBox box{x, kGap, 300, kHeading + (hosts.size() > drawn ? kHeading : 0)};
    for (std::size_t i = 0; i < drawn; ++i) {
      box.width = std::max(box.width, width_of(graph.hosts[hosts[i]]) + 2 * kGap);
      box.height += height_of(hosts[i]) + kGap;
    }
    canvas_.box(box, {kSiteFill, false});
    const TopologySite& site = graph.sites[at];
    canvas_.left_text(x + kGap, box.y + 16, "site " + name(site.name, at) + uplink_words(site), true);
    double y = box.y + kHeading;
    for (std::size_t i = 0; i < drawn; ++i) {
      host(hosts[i], {x + kGap, y, box.width - 2 * kGap, height_of(hosts[i])});
      y += height_of(hosts[i]) + kGap;
    }
    if (hosts.size() > drawn)
      canvas_.left_text(x + kGap, box.bottom() - 10, "and " + std::to_string(hosts.size() - drawn) + " more hosts");
    return box;
  }

  static std::string name(const std::string& stated, std::size_t number) {
    return stated.empty() ? std::to_string(number) : stated;
  }

  static std::string uplink_words(const TopologySite& site) {
    std::string words;
    if (site.uplink.known()) words += ", uplink " + link_words(site.uplink);
    if (site.downlink.known()) words += ", downlink " + link_words(site.downlink);
    return words;
  }

  [[nodiscard]] ChannelRows rows_of(std::size_t at) const { return {graph_.hosts[at], channels_.hosts[at]}; }
  [[nodiscard]] double height_of(std::size_t host) const { return kHostHeight + rows_of(host).height(); }

  void host(std::size_t at, const SvgBox& box) {
    const TopologyHost& host = graph_.hosts[at];
    canvas_.box(box, {kHostFill, false});
    std::string words = "host " + (host.name.empty() ? "without a name" : host.name);
    if (host.nodes.size() > 1) words += ", between NUMA nodes " + link_words(host.interconnect);
    canvas_.left_text(box.x + kGap, box.y + 15, words, true);
    gpus_.clear();
    ports_.clear();
    const ChannelRows rows = rows_of(at);
    double x = box.x + kGap;
    const double y = box.y + kHeading + rows.height() + kLinkSpace;
    for (const NumaNode& node : host.nodes) {
      const SvgBox place{x, y, width_of(node), kNodeHeight};
      this->node(node, place);
      x += place.width + kGap;
    }
    gpu_links(host, box.y + kHeading + rows.height(), y + kGap);
    if (gpus_.size() == gpus_of(host).size()) {  // a device with several GPUs is drawn as one, and has no rows
      std::vector<double> columns;
      for (const SvgBox& gpu : gpus_) columns.push_back(gpu.middle());
      rows.draw(canvas_, columns, box.x + kGap, box.y + kHeading);
      rails(host, channels_.hosts[at].rails);
    }
  }

  // A line from each port that channels use to the GPU beside it, and a frame around it. The box of a NIC stands for its ports.
  void rails(const TopologyHost& host, const std::vector<Rail>& rails) {
    const std::vector<PortPlace> ports = ports_of(host);
    for (const Rail& rail : rails)
      for (const auto& [port, box] : ports_) {
        if (port != ports[rail.port].port) continue;
        canvas_.box(box, {"none", false, kRailColour});
        if (gpus_.empty()) continue;
        const SvgBox& gpu = gpus_[static_cast<std::size_t>(rail.member)];
        constexpr double kBeside = kCell / 2 - 8;  // not through the words of the switch between them
        canvas_.line(gpu.middle() + kBeside, gpu.bottom(), box.middle() + kBeside, box.y, kRailColour);
      }
  }

  void node(const NumaNode& node, const SvgBox& box) {
    canvas_.box(box, {kNodeFill, node.source == FactSource::assumed});
    std::string words = "NUMA " + (node.number < 0 ? "node" : std::to_string(node.number));
    if (!node.cores.empty()) words += ", cores " + node.cores.ranges();
    canvas_.text({box.x, box.bottom() - kHeading, box.width, kHeading}, words);
    double x = box.x + kGap;
    for (const Column& column : columns_of(node)) {
      draw(column, x, box.y + kGap);
      x += column.width() + kGap;
    }
  }

  void draw(const Column& column, double x, double y) {
    const SvgBox middle{x, y + kRow + kGap, column.width(), kRow};
    const bool has_switch = column.root != nullptr && column.root->is_switch();
    if (has_switch) {
      canvas_.box(middle, {kSwitchFill, column.root->link_source == FactSource::assumed});
      canvas_.text({middle.x, middle.y, middle.width, kRow / 2}, "PCI switch");
      canvas_.text({middle.x, middle.y + kRow / 2, middle.width, kRow / 2}, pci_words(*column.root));
    }
    const double spread = kCell + kGap;
    for (std::size_t i = 0; i < column.gpus.size(); ++i)
      gpu(*column.gpus[i], {x + static_cast<double>(i) * spread, y, kCell, kRow}, has_switch);
    const double nics = y + 2 * (kRow + kGap);
    for (std::size_t i = 0; i < column.nics.size(); ++i) {
      const SvgBox place{x + static_cast<double>(i) * spread, nics, kCell, kRow};
      if (has_switch) canvas_.line(place.middle(), middle.bottom(), place.middle(), place.y);
      port(column.nics[i]->ports.front(), column.nics[i]->ports.size(), place);
    }
    for (std::size_t i = 0; i < column.loose_ports.size(); ++i)
      port(*column.loose_ports[i], 1, {x + static_cast<double>(i) * spread, nics, kCell, kRow});
  }

  static std::string pci_words(const PciDevice& device) {
    const auto rate = device.link().bytes_per_second;
    return rate ? rate_words(*rate) : text_of(device.address);
  }

  void gpu(const PciDevice& device, const SvgBox& box, bool has_switch) {
    const Gpu& gpu = device.gpus.front();
    canvas_.box(box, {kGpuFill, gpu.source == FactSource::assumed || device.link_source == FactSource::assumed});
    canvas_.text({box.x, box.y, box.width, kRow / 2}, gpu.dev < 0 ? "GPU" : "GPU " + std::to_string(gpu.dev), true);
    canvas_.text({box.x, box.y + kRow / 2, box.width, kRow / 2}, text_of(device.address));
    if (has_switch) canvas_.line(box.middle(), box.bottom(), box.middle(), box.bottom() + kGap);
    gpus_.push_back(box);
  }

  void port(const NetPort& port, std::size_t count, const SvgBox& box) {
    ports_.emplace_back(&port, box);
    canvas_.box(box, {kNicFill, port.source == FactSource::assumed || port.speed_source == FactSource::assumed});
    const std::string name = port.name.empty() ? "NIC" : port.name;
    canvas_.text({box.x, box.y, box.width, kRow / 2}, count > 1 ? name + " +" + std::to_string(count - 1) : name, true);
    if (port.speed_mbit > 0)
      canvas_.text({box.x, box.y + kRow / 2, box.width, kRow / 2},
                   (count > 1 ? std::to_string(count) + " x " : std::string()) + rate_words(port.speed_mbit * 1e6 / 8));
  }

  // A bar over all GPUs for switches of GPU links; an arc for each pair with direct links.
  void gpu_links(const TopologyHost& host, double y, double gpu_y) {
    const std::vector<GpuPlace> gpus = gpus_of(host);
    if (gpus.size() != gpus_.size() || gpus.empty()) return;  // a device with several GPUs is drawn as one
    const bool switched = std::any_of(gpus.begin(), gpus.end(), [](const GpuPlace& place) {
      return std::any_of(place.gpu->links.begin(), place.gpu->links.end(), [](const GpuLink& link) { return link.to_switch(); });
    });
    if (switched) {
      const SvgBox bar{gpus_.front().x, y, gpus_.back().x - gpus_.front().x + kCell, kRow / 2 + 4};
      canvas_.box(bar, {kLinkSwitchFill, false});
      const auto rate = gpu_bytes_per_second(gpus.front());
      canvas_.text(bar, "switches of GPU links" + (rate ? ": " + rate_words(*rate) + " a GPU (assumed of its model)" : ""));
    }
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      if (std::any_of(gpus[i].gpu->links.begin(), gpus[i].gpu->links.end(), [](const GpuLink& link) { return link.to_switch(); }))
        canvas_.line(gpus_[i].middle(), y + kRow / 2 + 4, gpus_[i].middle(), gpu_y);
      for (std::size_t j = i + 1; j < gpus.size(); ++j) {
        const auto link = gpu_link(gpus[i], gpus[j]);
        if (link && link->medium != LinkMedium::nvswitch)
          canvas_.arc(gpus_[i].middle(), gpus_[j].middle(), gpu_y,
                      std::min(kLinkSpace + kGap - 4, 14.0 + 4.0 * static_cast<double>(j - i)));
      }
    }
  }

  // An arrow for each direction of each pair of sites, each on a row of its own. Returns the height below them.
  double arrows(const TopologyGraph& graph, double y) {
    std::size_t count = 0;
    for (std::size_t from = 0; from < centres_.size(); ++from)
      for (std::size_t to = 0; to < centres_.size(); ++to) {
        if (from == to || ++count > kMostArrows) continue;
        const LinkFacts facts = graph.between_sites.empty() ? LinkFacts() : graph.between_sites[from][to];
        const bool in_ring = is_in_ring(from, to);
        canvas_.arrow(centres_[from], centres_[to], y + 14, in_ring ? kRailColour : kSvgGrey);
        const double left = std::min(centres_[from], centres_[to]);
        canvas_.left_text(left + 2 * kGap, y + 10,
                          name(graph.sites[from].name, from) + " to " + name(graph.sites[to].name, to) + ": " +
                              link_words(facts) + (in_ring && graph.sites.size() > 2 ? ", in the ring of sites" : ""),
                          false, in_ring ? kRailColour : kSvgBlack);
        y += kLinkRow;
      }
    if (count > kMostArrows)
      canvas_.left_text(kGap, y + 14, "and " + std::to_string(count - kMostArrows) + " more links between sites");
    return y + (count > kMostArrows ? kLinkRow : 0);
  }

  // True if rings of sites go from one site to the other next.
  [[nodiscard]] bool is_in_ring(std::size_t from, std::size_t to) const {
    const std::vector<int>& sites = channels_.order.sites;
    for (std::size_t i = 0; i < sites.size(); ++i)
      if (static_cast<std::size_t>(sites[i]) == from) return static_cast<std::size_t>(sites[(i + 1) % sites.size()]) == to;
    return false;
  }

  const TopologyGraph& graph_;
  GraphChannels channels_;
  SvgCanvas canvas_;
  std::vector<double> centres_;  // of the sites
  // The GPUs of the host that is drawn, and its ports with the box that shows them.
  std::vector<SvgBox> gpus_;
  std::vector<std::pair<const NetPort*, SvgBox>> ports_;
};

}  // namespace

std::string topology_svg(const TopologyGraph& graph) { return Drawing(graph).write(); }

}  // namespace seto
