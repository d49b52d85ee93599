#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "src/base/text.h"
#include "src/topology/xml/attributes.h"
#include "src/topology/xml/link_elements.h"
#include "src/topology/xml/topology_file.h"
#include "src/topology/xml/xml_element.h"

namespace seto {
namespace {

constexpr int kMostNumber = 1'000'000'000;
// The target of a link in virtual machines that hide the switch.
constexpr std::string_view kHiddenTarget = "fffffff:ffff:ff";

Status unknown_child(const XmlElement& parent, const XmlElement& child) {
  return element_failure(child, "is not known inside <" + parent.name + ">");
}

Status check_text(const XmlElement& element) {
  if (element.text_line == 0) return {};
  return failure(Code::invalid_argument, "line %zu: text inside <%s>: only elements may stand there", element.text_line,
                 element.name.c_str());
}

Status leaf(const XmlElement& element) {
  if (!element.children.empty()) return unknown_child(element, element.children.front());
  return check_text(element);
}

// Checks what NCCL's own reader would refuse: such a file would work here and fail there.
Status check_strict(const XmlDocument& document) {
  static constexpr const char* kAdvice = "NCCL does not read it; remove it";
  if (document.prolog_line != 0)
    return failure(Code::invalid_argument, "line %zu: an XML prolog: %s", document.prolog_line, kAdvice);
  if (document.tab_line != 0) return failure(Code::invalid_argument, "line %zu: a tab: %s", document.tab_line, kAdvice);
  if (document.newline_tag_line != 0)
    return failure(Code::invalid_argument, "line %zu: a newline inside a tag: %s", document.newline_tag_line, kAdvice);
  return {};
}

class NcclReader final {
 public:
  Result<TopologyGraph> read(const XmlElement& system) {
    Attributes attributes(system);
    if (attributes.integer("version", 1, 2, 0) == 0) attributes.fail("version is missing: 1, or 2 for AMD's variant");
    attributes.ignore({"name"});
    SETO_TRY(attributes.done());
    SETO_TRY(check_text(system));
    // Our own elements come first, because others refer to them.
    graph_.sites.clear();
    SETO_TRY(for_each(system, "seto_site", [this](const XmlElement& element) { return site(element); }));
    if (graph_.sites.empty()) graph_.sites.resize(1);
    SETO_TRY(for_each(system, "seto_host", [this](const XmlElement& element) { return host(element); }));
    for (const XmlElement& child : system.children) {
      if (child.name.starts_with("seto_")) continue;
      if (child.name != "cpu") return unknown_child(system, child);
      SETO_TRY(cpu(child));
    }
    SETO_TRY(for_each(system, "seto_note", [this](const XmlElement& element) { return note(element); }));
    SETO_TRY(for_each(system, "seto_link", [this](const XmlElement& element) { return read_link(element, graph_); }));
    SETO_TRY(check_own_elements(system));
    SETO_TRY(check_names(system));
    return std::move(graph_);
  }

 private:
  template <class Action>
  static Status for_each(const XmlElement& parent, std::string_view name, const Action& action) {
    for (const XmlElement& child : parent.children)
      if (child.name == name) SETO_TRY(action(child));
    return {};
  }

  static Status check_own_elements(const XmlElement& system) {
    for (const XmlElement& child : system.children)
      if (child.name.starts_with("seto_") && child.name != "seto_site" && child.name != "seto_host" &&
          child.name != "seto_note" && child.name != "seto_link")
        return unknown_child(system, child);
    return {};
  }

  Status check_names(const XmlElement& system) const {
    std::vector<std::string> names;
    for (const TopologyHost& each : graph_.hosts) names.push_back(each.name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) return element_failure(system, "two hosts have the name '" + *twice + "'");
    return {};
  }

  Status site(const XmlElement& element) {
    if (graph_.sites.size() == kMostSites)
      return element_failure(element, "one site too many; at most " + std::to_string(kMostSites) + " are read");
    Attributes attributes(element);
    graph_.sites.emplace_back().name = attributes.name("name");
    SETO_TRY(attributes.done());
    return leaf(element);
  }

  Status host(const XmlElement& element) {
    Attributes attributes(element);
    const auto hash = attributes.hexadecimal("hash", ~std::uint64_t{0});
    if (!hash) attributes.fail("hash is missing");
    TopologyHost made;
    made.name = attributes.name("name");
    made.site = static_cast<std::size_t>(attributes.integer("site", 0, static_cast<int>(graph_.sites.size()) - 1, 0));
    SETO_TRY(attributes.done());
    if (!host_of_hash_.emplace(*hash, graph_.hosts.size()).second) return element_failure(element, "this hash is there twice");
    graph_.hosts.push_back(std::move(made));
    return leaf(element);
  }

  Status note(const XmlElement& element) {
    Attributes attributes(element);
    const auto hash = attributes.hexadecimal("hash", ~std::uint64_t{0});
    std::string text = attributes.name("text");
    SETO_TRY(attributes.done());
    const auto host = host_of_hash_.find(hash.value_or(0));
    if (!hash || host == host_of_hash_.end()) return element_failure(element, "hash: no host has it");
    graph_.hosts[host->second].notes.push_back(std::move(text));
    return leaf(element);
  }

  // The source of a fact; a file, if none is stated.
  static FactSource source(Attributes& attributes, std::string_view key) {
    const std::string name = attributes.text(key);
    if (name.empty()) return FactSource::file;
    const auto known = fact_source_of(name);
    if (!known) attributes.fail(std::string(key) + ": '" + plain_ascii(name.substr(0, 40)) + "' is not a source");
    return known.value_or(FactSource::file);
  }

  // The host of a <cpu>. Without a hash it is the host without a name.
  std::size_t host_of(std::optional<std::uint64_t> hash) {
    if (!hash) {
      const auto unnamed =
          std::find_if(graph_.hosts.begin(), graph_.hosts.end(), [](const TopologyHost& each) { return each.name.empty(); });
      if (unnamed != graph_.hosts.end()) return static_cast<std::size_t>(unnamed - graph_.hosts.begin());
      graph_.hosts.emplace_back();
      return graph_.hosts.size() - 1;
    }
    const auto [at, made] = host_of_hash_.emplace(*hash, graph_.hosts.size());
    if (made) graph_.hosts.emplace_back().name = hash_text(*hash);
    return at->second;
  }

  Status cpu(const XmlElement& element) {
    SETO_TRY(check_text(element));
    Attributes attributes(element);
    NumaNode node;
    node.number = attributes.integer("numaid", -1, 4095, -1);
    const auto hash = attributes.hexadecimal("host_hash", ~std::uint64_t{0});
    const std::optional<CoreSet> cores = CoreSet::parse(attributes.text("affinity"));
    if (!cores) attributes.fail("affinity is not a mask of cores such as 00000000,000000ff");
    node.arch = attributes.name("arch");
    node.vendor = attributes.name("vendor");
    node.family = attributes.integer("familyid", 0, kMostNumber, -1);
    node.model = attributes.integer("modelid", 0, kMostNumber, -1);
    node.source = source(attributes, "seto_source");
    SETO_TRY(attributes.done());
    node.cores = *cores;
    const std::size_t at = host_of(hash);
    for (const NumaNode& other : graph_.hosts[at].nodes)
      if (node.number >= 0 && other.number == node.number)
        return element_failure(element, "numaid " + std::to_string(node.number) + " of this host is there twice");
    for (const XmlElement& child : element.children) {
      if (child.name == "pci") {
        SETO_TRY(pci(child, at, node.devices.emplace_back()));
      } else if (child.name == "nic") {
        SETO_TRY(nic(child, node.ports));
      } else {
        return unknown_child(element, child);
      }
    }
    graph_.hosts[at].nodes.push_back(std::move(node));
    return {};
  }

  Status pci(const XmlElement& element, std::size_t at, PciDevice& device) {
    SETO_TRY(check_text(element));
    SETO_TRY(pci_attributes(element, device));
    if (std::find(path_.begin(), path_.end(), device.address) != path_.end())
      return element_failure(element, "busid " + text_of(device.address) + " lies within itself: the tree has a cycle");
    const auto [first, fresh] = lines_.emplace(std::pair(at, device.address), element.line);
    if (!fresh)
      return element_failure(
          element, "busid " + text_of(device.address) + " is there twice: the first is on line " + std::to_string(first->second));
    path_.push_back(device.address);
    for (const XmlElement& child : element.children) {
      if (child.name == "pci") {
        SETO_TRY(pci(child, at, device.children.emplace_back()));
      } else if (child.name == "gpu") {
        SETO_TRY(gpu(child, device.gpus.emplace_back()));
      } else if (child.name == "nic") {
        SETO_TRY(nic(child, device.ports));
      } else if (child.name == "pcilink") {
        SETO_TRY(pci_link(child, device));
      } else {
        return unknown_child(element, child);
      }
    }
    path_.pop_back();
    return {};
  }

  static Status pci_attributes(const XmlElement& element, PciDevice& device) {
    Attributes attributes(element);
    device.address = attributes.address("busid").value_or(PciAddress());
    const auto identity = [&](std::string_view key, std::uint64_t most) -> std::optional<std::uint32_t> {
      const auto value = attributes.hexadecimal(key, most);
      return value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
    };
    device.class_code = identity("class", 0xffffff);
    device.vendor = identity("vendor", 0xffff);
    device.device = identity("device", 0xffff);
    device.subsystem_vendor = identity("subsystem_vendor", 0xffff);
    device.subsystem_device = identity("subsystem_device", 0xffff);
    const std::string speed = attributes.text("link_speed");
    device.generation = pci_generation_of(speed);
    if (device.generation == 0 && !speed.empty() && !speed.starts_with("Unknown"))
      attributes.fail("link_speed: '" + plain_ascii(speed.substr(0, 40)) +
                      "' is not a speed of PCI Express such as 16.0 GT/s PCIe");
    device.lanes = attributes.integer("link_width", 0, 255, 0);
    if (device.lanes == 255) device.lanes = 0;  // the kernel's word for unknown
    if (device.lanes > 32) attributes.fail("link_width: " + std::to_string(device.lanes) + " lanes; a link has at most 32");
    device.source = source(attributes, "seto_source");
    device.link_source = source(attributes, "seto_link_source");
    return attributes.done();
  }

  static Status pci_link(const XmlElement& element, PciDevice& device) {
    Attributes attributes(element);
    const auto target = attributes.address("target");
    SETO_TRY(attributes.done());
    if (*target == device.address) return element_failure(element, "the target is the device itself: a cycle");
    device.peer_links.push_back(*target);
    return leaf(element);
  }

  static Status gpu(const XmlElement& element, Gpu& gpu) {
    SETO_TRY(check_text(element));
    Attributes attributes(element);
    gpu.dev = attributes.integer("dev", -1, 65'535, -1);
    gpu.sm = attributes.integer("sm", -1, 9'999, -1);
    gpu.rank = attributes.integer("rank", -1, kMostNumber, -1);
    gpu.gdr = attributes.flag("gdr");
    gpu.gcn = attributes.name("gcn");
    gpu.arch = attributes.name("arch");
    attributes.ignore({"mlopart"});
    gpu.source = source(attributes, "seto_source");
    gpu.uuid = attributes.name("seto_uuid");
    gpu.product = attributes.name("seto_product");
    SETO_TRY(attributes.done());
    for (const XmlElement& child : element.children) {
      if (child.name == "nvlink" || child.name == "xgmi") {
        SETO_TRY(gpu_link(child, gpu.links.emplace_back()));
      } else if (child.name == "c2c") {
        if (gpu.chip_link) return element_failure(child, "is there twice in a <gpu>");
        SETO_TRY(chip_link(child, gpu.chip_link.emplace()));
      } else {
        return unknown_child(element, child);
      }
    }
    return {};
  }

  static Status gpu_link(const XmlElement& element, GpuLink& link) {
    Attributes attributes(element);
    const std::string* const target = element.attribute("target");
    if (target != nullptr && *target == kHiddenTarget) {
      attributes.ignore({"target"});
    } else {
      link.target = attributes.address("target");
    }
    link.count = attributes.integer("count", 1, 1024, 1);
    if (const auto code = attributes.hexadecimal("tclass", 0xffffff)) link.target_class = static_cast<std::uint32_t>(*code);
    link.medium = element.name == "xgmi" ? LinkMedium::xgmi : LinkMedium::nvlink;
    SETO_TRY(attributes.done());
    return leaf(element);
  }

  static Status chip_link(const XmlElement& element, ChipLink& link) {
    Attributes attributes(element);
    link.bandwidth_mb = attributes.integer("bw", 0, 100'000'000, 0);
    link.count = attributes.integer("count", 1, 1024, 1);
    SETO_TRY(attributes.done());
    return leaf(element);
  }

  static Status nic(const XmlElement& element, std::vector<NetPort>& ports) {
    SETO_TRY(check_text(element));
    SETO_TRY(Attributes(element).done());
    for (const XmlElement& child : element.children) {
      if (child.name != "net") return unknown_child(element, child);
      SETO_TRY(net(child, ports.emplace_back()));
    }
    return {};
  }

  static Status net(const XmlElement& element, NetPort& port) {
    Attributes attributes(element);
    port.name = attributes.name("name");
    port.dev = attributes.integer("dev", -1, 65'535, -1);
    port.speed_mbit = std::max(0, attributes.integer("speed", -1, 100'000'000, 0));
    port.port = attributes.integer("port", -1, 65'535, -1);
    port.latency_us = attributes.number("latency", 0, 1e9);
    port.guid = attributes.hexadecimal("guid", ~std::uint64_t{0});
    port.max_connections = attributes.integer("maxconn", -1, kMostNumber, -1);
    port.gdr = attributes.flag("gdr");
    for (const char* const key : {"keep", "coll", "net", "gin", "rma", "rail", "plane"}) {
      std::string value = attributes.name(key);
      if (!value.empty()) port.plugin_attributes.emplace_back(key, std::move(value));
    }
    state(attributes, port);
    SETO_TRY(attributes.done());
    return leaf(element);
  }

  static void state(Attributes& attributes, NetPort& port) {
    port.source = source(attributes, "seto_source");
    port.speed_source = source(attributes, "seto_speed_source");
    port.up = attributes.flag("seto_up");
    port.mtu = attributes.integer("seto_mtu", 0, 1 << 20, 0);
    port.default_route = attributes.flag("seto_default_route").value_or(false);
    std::istringstream addresses(attributes.name("seto_addresses"));
    for (std::string address; addresses >> address;) port.addresses.push_back(address);
    port.rdma.link_layer = attributes.name("seto_rdma_layer");
    port.rdma.over = attributes.name("seto_rdma_over");
    if (const int index = attributes.integer("seto_gid_index", -1, 65'535, -1); index >= 0) port.rdma.gid = index;
    port.rdma.gid_text = attributes.name("seto_gid");
    port.rdma.why = attributes.name("seto_gid_why");
  }

  TopologyGraph graph_;
  std::map<std::uint64_t, std::size_t> host_of_hash_;
  std::map<std::pair<std::size_t, PciAddress>, std::size_t> lines_;  // (host, address) -> line of its element
  std::vector<PciAddress> path_;                                     // the elements around the one that is read
};

}  // namespace

Result<TopologyGraph> read_nccl(const XmlDocument& document) {
  SETO_TRY(check_strict(document));
  return NcclReader().read(document.root);
}

}  // namespace seto
