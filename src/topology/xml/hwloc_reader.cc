#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/text.h"
#include "src/topology/xml/attributes.h"
#include "src/topology/xml/topology_file.h"
#include "src/topology/xml/xml_element.h"

namespace seto {
namespace {

constexpr std::uint32_t kNvidia = 0x10de;
constexpr std::uint32_t kAmd = 0x1002;
constexpr int kMostModel = 1'000'000;
constexpr int kMostOrdinal = 65'535;

std::string info_of(const XmlElement& object, std::string_view name) {
  for (const XmlElement& child : object.children) {
    const std::string* const key = child.name == "info" ? child.attribute("name") : nullptr;
    const std::string* const value = child.attribute("value");
    if (key != nullptr && *key == name && value != nullptr) return plain_ascii(*value);
  }
  return {};
}

std::string type_of(const XmlElement& object) {
  const std::string* const type = object.attribute("type");
  return type == nullptr ? std::string() : *type;
}

int number_or_unknown(std::string_view text, int most) {
  int result = -1;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), result);
  return error == std::errc() && at == text.data() + text.size() && result >= 0 && result <= most ? result : -1;
}

// NCCL's names of architectures.
std::string architecture(const std::string& name) {
  if (name == "aarch64") return "arm64";
  if (name.starts_with("ppc64")) return "ppc64";
  return name;
}

// "0302 [10de:2330] [10de:16c1] a1": class, vendor and device, the same of the subsystem, revision.
bool read_identity(const std::string& text, PciDevice& device) {
  std::array<std::uint32_t, 5> numbers{};
  static constexpr std::array<std::size_t, 5> kPlaces = {0, 6, 11, 18, 23};
  if (text.size() < 28) return false;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const char* const first = text.data() + kPlaces[i];
    const auto [at, error] = std::from_chars(first, first + 4, numbers[i], 16);
    if (error != std::errc() || at != first + 4) return false;
  }
  device.class_code = numbers[0] << 8;
  device.vendor = numbers[1];
  device.device = numbers[2];
  device.subsystem_vendor = numbers[3];
  device.subsystem_device = numbers[4];
  return true;
}

// hwloc states gigabytes a second. Different generations and widths give the same rate (16 lanes of generation 3, 8 of 4): the
// widest is taken. The rate is right in any case.
void set_link(double gigabytes_per_second, PciDevice& device) {
  for (const int lanes : {16, 8, 4, 2, 1, 32}) {
    for (int generation = 1; generation <= 6; ++generation) {
      const double rate = *pci_bytes_per_second(generation, lanes) / 1e9;
      if (std::abs(rate - gigabytes_per_second) > 0.005 * rate) continue;
      device.generation = generation;
      device.lanes = lanes;
      return;
    }
  }
}

// A tree of devices is kept only where it leads to a GPU or a NIC.
bool is_of_use(const PciDevice& device) {
  return !device.gpus.empty() || !device.ports.empty() || !device.children.empty() ||
         (device.class_code && is_network_class(*device.class_code));
}

class HwlocReader final {
 public:
  Result<TopologyGraph> read(const XmlElement& topology) {
    const auto machine = std::find_if(topology.children.begin(), topology.children.end(),
                                      [](const XmlElement& each) { return each.name == "object"; });
    if (machine == topology.children.end()) return element_failure(topology, "holds no object");
    host_.name = info_of(*machine, "HostName");
    architecture_ = architecture(info_of(*machine, "Architecture"));
    SETO_TRY(object(*machine, {}));
    if (host_.nodes.empty()) {
      NumaNode whole;
      whole.arch = architecture_;
      SETO_TRY(read_cores(*machine, whole.cores));
      host_.nodes.push_back(std::move(whole));
    }
    if (!unplaced_.empty() && host_.nodes.size() > 1)
      host_.notes.push_back("hwloc does not state the NUMA node of " + std::to_string(unplaced_.size()) + " PCI trees; node " +
                            std::to_string(host_.nodes[0].number) + " is assumed");
    std::move(unplaced_.begin(), unplaced_.end(), std::back_inserter(host_.nodes[0].devices));
    TopologyGraph graph;
    graph.hosts.push_back(std::move(host_));
    return graph;
  }

 private:
  // The properties that an object inherits from those around it.
  struct Surroundings {
    std::optional<std::size_t> node;
    const XmlElement* package = nullptr;
  };

  static Status read_cores(const XmlElement& object, CoreSet& cores) {
    Attributes attributes(object);
    const auto set = CoreSet::parse(attributes.text("cpuset"));
    if (!set) attributes.fail("cpuset is not a mask of cores such as 0x000000ff");
    if (set) cores = *set;
    return attributes.first();
  }

  Status object(const XmlElement& element, Surroundings around) {
    const std::string type = type_of(element);
    if (type == "Package" || type == "Socket") around.package = &element;
    if (type == "NUMANode") {
      SETO_TRY(numa_node(element, around));
      around.node = host_.nodes.size() - 1;
    }
    // From version 2 on a NUMA node is a child without children beside the cores that are near it.
    for (const XmlElement& child : element.children) {
      if (type_of(child) != "NUMANode" || child.name != "object") continue;
      SETO_TRY(object(child, around));
      if (type != "NUMANode") around.node = host_.nodes.size() - 1;
    }
    for (const XmlElement& child : element.children) {
      if (child.name != "object" || type_of(child) == "NUMANode") continue;
      const std::string below = type_of(child);
      if (below == "Bridge" || below == "PCIDev") {
        SETO_TRY(device(child, around.node ? host_.nodes[*around.node].devices : unplaced_));
      } else {
        SETO_TRY(object(child, around));
      }
    }
    return {};
  }

  Status numa_node(const XmlElement& element, const Surroundings& around) {
    Attributes attributes(element);
    NumaNode node;
    node.number = attributes.integer("os_index", 0, 4095, -1);
    SETO_TRY(attributes.first());
    SETO_TRY(read_cores(element, node.cores));
    for (const NumaNode& other : host_.nodes)
      if (other.number == node.number)
        return element_failure(element, "NUMA node " + std::to_string(node.number) + " is there twice");
    node.arch = architecture_;
    if (around.package != nullptr) {
      node.vendor = info_of(*around.package, "CPUVendor");
      node.family = number_or_unknown(info_of(*around.package, "CPUFamilyNumber"), kMostModel);
      node.model = number_or_unknown(info_of(*around.package, "CPUModelNumber"), kMostModel);
    }
    host_.nodes.push_back(std::move(node));
    return {};
  }

  // A host bridge is no PCI device: the devices below it belong to the NUMA node.
  Status device(const XmlElement& element, std::vector<PciDevice>& target) {
    const std::string* const bridge = element.attribute("bridge_type");
    if (bridge != nullptr && bridge->starts_with("0-")) {
      for (const XmlElement& child : element.children)
        if (child.name == "object") SETO_TRY(device(child, target));
      return {};
    }
    PciDevice made;
    Attributes attributes(element);
    made.address = attributes.address("pci_busid").value_or(PciAddress());
    const std::string identity = attributes.text("pci_type");
    if (!identity.empty() && !read_identity(identity, made))
      attributes.fail("pci_type is not of the form 0302 [10de:2330] [10de:16c1] a1");
    set_link(attributes.number("pci_link_speed", 0, 1e6).value_or(0), made);
    SETO_TRY(attributes.first());
    const auto [first, fresh] = lines_.emplace(made.address, element.line);
    if (!fresh)
      return element_failure(element, "pci_busid " + text_of(made.address) + " is there twice: the first is on line " +
                                          std::to_string(first->second));
    const bool compute = made.vendor == kNvidia || made.vendor == kAmd;
    if (compute && made.class_code && is_gpu_class(*made.class_code)) made.gpus.emplace_back();
    for (const XmlElement& child : element.children) {
      if (child.name != "object") continue;
      const std::string type = type_of(child);
      if (type == "OSDev") {
        SETO_TRY(software_device(child, made));
      } else if (type == "Bridge" || type == "PCIDev") {
        SETO_TRY(device(child, made.children));
      }
    }
    if (is_of_use(made)) target.push_back(std::move(made));
    return {};
  }

  // The name by which the operating system, CUDA or NVML knows a device.
  static Status software_device(const XmlElement& element, PciDevice& device) {
    static constexpr int kNetwork = 2;
    static constexpr int kOpenFabrics = 3;
    Attributes attributes(element);
    const std::string name = attributes.name("name");
    const int type = attributes.integer("osdev_type", 0, 1'000, -1);
    SETO_TRY(attributes.first());
    if (type == kNetwork || type == kOpenFabrics) {
      NetPort port;
      port.name = name;
      device.ports.push_back(std::move(port));
    } else if (!device.gpus.empty() && name.starts_with("cuda")) {
      device.gpus[0].dev = number_or_unknown(std::string_view(name).substr(4), kMostOrdinal);
    } else if (!device.gpus.empty() && name.starts_with("nvml")) {
      device.gpus[0].uuid = info_of(element, "NVIDIAUUID");
    }
    return {};
  }

  TopologyHost host_;
  std::string architecture_;
  std::vector<PciDevice> unplaced_;  // devices of which hwloc does not state the NUMA node
  std::map<PciAddress, std::size_t> lines_;
};

}  // namespace

Result<TopologyGraph> read_hwloc(const XmlDocument& document) { return HwlocReader().read(document.root); }

}  // namespace seto
