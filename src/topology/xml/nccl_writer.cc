#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "src/base/text.h"
#include "src/topology/xml/link_elements.h"
#include "src/topology/xml/topology_file.h"
#include "src/topology/xml/xml_element.h"

namespace seto {
namespace {

bool has_amd_links(const PciDevice& device) {
  return std::any_of(device.gpus.begin(), device.gpus.end(),
                     [](const Gpu& gpu) {
                       return std::any_of(gpu.links.begin(), gpu.links.end(),
                                          [](const GpuLink& link) { return link.medium == LinkMedium::xgmi; });
                     }) ||
         std::any_of(device.children.begin(), device.children.end(), has_amd_links);
}

bool has_amd_links(const TopologyGraph& graph) {
  for (const TopologyHost& host : graph.hosts)
    for (const NumaNode& node : host.nodes)
      if (std::any_of(node.devices.begin(), node.devices.end(), [](const PciDevice& each) { return has_amd_links(each); }))
        return true;
  return false;
}

// Writes NCCL's subset of XML: no prolog, no tabs, a tag on one line, one space before each attribute.
class Writer final {
 public:
  explicit Writer(FileContent content) : everything_(content == FileContent::everything) {}

  std::string write(const TopologyGraph& graph) {
    open("system");
    attribute("version", has_amd_links(graph) ? 2 : 1);
    begin_children();
    own_elements(graph);
    for (const TopologyHost& host : graph.hosts)
      for (const NumaNode& node : host.nodes) cpu(node, is_alone(graph) ? std::nullopt : std::optional(host_hash_of(host.name)));
    text_ += links_text(graph);
    close("system");
    return std::move(text_);
  }

 private:
  // One host without a name in one site needs no element of our own.
  static bool is_alone(const TopologyGraph& graph) {
    return graph.hosts.size() == 1 && graph.hosts[0].name.empty() && graph.hosts[0].site == 0;
  }

  void open(std::string_view name) {
    indent();
    text_.append("<").append(name);
    ++depth_;
  }
  void begin_children() { text_ += ">\n"; }
  void close_empty() {
    text_ += "/>\n";
    --depth_;
  }
  void close(std::string_view name) {
    --depth_;
    indent();
    text_.append("</").append(name).append(">\n");
  }
  void indent() { text_.append(2 * depth_, ' '); }

  void attribute(std::string_view key, std::string_view value) {
    text_.append(" ").append(key).append("=\"").append(xml_escaped(value)).append("\"");
  }
  void attribute(std::string_view key, int value) { attribute(key, std::string_view(std::to_string(value))); }
  void source(std::string_view key, FactSource value) {
    if (everything_ && value != FactSource::file) attribute(key, name_of(value));
  }
  void known(std::string_view key, int value, int unknown = -1) {
    if (value != unknown) attribute(key, value);
  }
  void known(std::string_view key, const std::string& value) {
    if (!value.empty()) attribute(key, std::string_view(value));
  }
  void known(std::string_view key, const std::optional<bool>& value) {
    if (value) attribute(key, *value ? 1 : 0);
  }
  void identity(std::string_view key, const std::optional<std::uint32_t>& value, int digits) {
    if (!value) return;
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "0x%0*x", digits, *value);
    attribute(key, std::string_view(text.data()));
  }

  void own_elements(const TopologyGraph& graph) {
    if (graph.sites.size() > 1 || !graph.sites[0].name.empty()) {
      for (const TopologySite& site : graph.sites) {
        open("seto_site");
        attribute("name", std::string_view(site.name));
        close_empty();
      }
    }
    if (is_alone(graph)) return;
    for (const TopologyHost& host : graph.hosts) {
      open("seto_host");
      attribute("hash", std::string_view(hash_text(host_hash_of(host.name))));
      attribute("name", std::string_view(host.name));
      attribute("site", static_cast<int>(host.site));
      close_empty();
      if (everything_) notes(host);
    }
  }

  void notes(const TopologyHost& host) {
    for (const std::string& note : host.notes) {
      open("seto_note");
      attribute("hash", std::string_view(hash_text(host_hash_of(host.name))));
      attribute("text", std::string_view(plain_ascii(note.substr(0, kMostNote))));
      close_empty();
    }
  }

  void cpu(const NumaNode& node, std::optional<std::uint64_t> hash) {
    open("cpu");
    attribute("numaid", node.number);
    if (hash) attribute("host_hash", std::string_view(hash_text(*hash)));
    known("affinity", node.cores.text());
    known("arch", node.arch);
    known("vendor", node.vendor);
    known("familyid", node.family);
    known("modelid", node.model);
    source("seto_source", node.source);
    if (node.devices.empty() && node.ports.empty()) return close_empty();
    begin_children();
    for (const PciDevice& device : node.devices) pci(device);
    nic(node.ports);
    close("cpu");
  }

  void pci(const PciDevice& device) {
    open("pci");
    attribute("busid", std::string_view(text_of(device.address)));
    identity("class", device.class_code, 6);
    identity("vendor", device.vendor, 4);
    identity("device", device.device, 4);
    identity("subsystem_vendor", device.subsystem_vendor, 4);
    identity("subsystem_device", device.subsystem_device, 4);
    static constexpr std::array<std::string_view, 7> kSpeeds = {"",          "2.5 GT/s",  "5.0 GT/s", "8.0 GT/s",
                                                                "16.0 GT/s", "32.0 GT/s", "64.0 GT/s"};
    if (device.generation > 0)
      attribute("link_speed", std::string(kSpeeds[static_cast<std::size_t>(device.generation)]) + " PCIe");
    known("link_width", device.lanes, 0);
    source("seto_source", device.source);
    source("seto_link_source", device.link_source);
    if (device.children.empty() && device.gpus.empty() && device.ports.empty() && device.peer_links.empty()) return close_empty();
    begin_children();
    for (const PciDevice& child : device.children) pci(child);
    for (const Gpu& each : device.gpus) gpu(each);
    nic(device.ports);
    for (const PciAddress& target : device.peer_links) {
      open("pcilink");
      attribute("target", std::string_view(text_of(target)));
      close_empty();
    }
    close("pci");
  }

  void gpu(const Gpu& gpu) {
    open("gpu");
    known("dev", gpu.dev);
    known("sm", gpu.sm);
    known("gcn", gpu.gcn);
    known("arch", gpu.arch);
    known("rank", gpu.rank);
    known("gdr", gpu.gdr);
    source("seto_source", gpu.source);
    if (everything_) known("seto_uuid", gpu.uuid);
    if (everything_) known("seto_product", gpu.product);
    if (gpu.links.empty() && !gpu.chip_link) return close_empty();
    begin_children();
    for (const GpuLink& link : gpu.links) {
      open(link.medium == LinkMedium::xgmi ? "xgmi" : "nvlink");
      attribute("target", std::string_view(link.target ? text_of(*link.target) : "fffffff:ffff:ff"));
      attribute("count", link.count);
      identity("tclass", link.target_class, 6);
      close_empty();
    }
    if (gpu.chip_link) {
      open("c2c");
      attribute("bw", gpu.chip_link->bandwidth_mb);
      attribute("count", gpu.chip_link->count);
      close_empty();
    }
    close("gpu");
  }

  void nic(const std::vector<NetPort>& ports) {
    if (ports.empty()) return;
    open("nic");
    begin_children();
    for (const NetPort& port : ports) {
      open("net");
      known("name", port.name);
      known("dev", port.dev);
      known("speed", port.speed_mbit, 0);
      known("port", port.port);
      if (port.latency_us) attribute("latency", std::string_view(number_text(*port.latency_us)));
      if (port.guid) attribute("guid", std::string_view(hash_text(*port.guid)));
      known("maxconn", port.max_connections);
      known("gdr", port.gdr);
      for (const auto& [key, value] : port.plugin_attributes) attribute(key, std::string_view(value));
      if (everything_) state(port);
      close_empty();
    }
    close("nic");
  }

  void state(const NetPort& port) {
    source("seto_source", port.source);
    source("seto_speed_source", port.speed_source);
    known("seto_up", port.up);
    known("seto_mtu", port.mtu, 0);
    if (port.default_route) attribute("seto_default_route", 1);
    std::string addresses;
    for (const std::string& address : port.addresses)
      if (addresses.size() + address.size() < kMostNote) addresses.append(addresses.empty() ? "" : " ").append(address);
    known("seto_addresses", addresses);
    known("seto_rdma_layer", port.rdma.link_layer);
    known("seto_rdma_over", port.rdma.over);
    if (port.rdma.gid) attribute("seto_gid_index", *port.rdma.gid);
    known("seto_gid", port.rdma.gid_text);
    known("seto_gid_why", plain_ascii(note_of(port.rdma.why)));
  }

  static constexpr std::size_t kMostNote = 200;  // a value has at most 254 letters
  static std::string note_of(const std::string& text) {
    return text.size() <= kMostNote ? text : text.substr(0, kMostNote - 3) + "...";
  }

  bool everything_;
  std::string text_;
  std::size_t depth_ = 0;
};

}  // namespace

std::string write_nccl(const TopologyGraph& graph, FileContent content) { return Writer(content).write(graph); }

}  // namespace seto
