#include "src/topology/discovery/pci_facts.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "src/base/text.h"

namespace seto {
namespace {

constexpr const char* kDevices = "/sys/bus/pci/devices/";
constexpr std::uint32_t kNvidia = 0x10de;
constexpr std::uint32_t kAmd = 0x1002;

PciDevice* find_in(std::vector<PciDevice>& devices, const PciAddress& address) {
  for (PciDevice& device : devices) {
    if (device.address == address) return &device;
    if (PciDevice* const below = find_in(device.children, address)) return below;
  }
  return nullptr;
}

std::vector<PciAddress> addresses_in(std::string_view path) {
  std::vector<PciAddress> found;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    if (const auto address = parse_pci_address(path.substr(0, slash))) found.push_back(*address);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
  return found;
}

std::optional<std::uint32_t> hex_file(HostApi& system, const std::string& path) {
  const std::string text = system.read(path).value_or("");
  std::uint32_t value = 0;
  if (!text.starts_with("0x")) return std::nullopt;
  const auto [at, error] = std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
  return error == std::errc() && at == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

int number_file(HostApi& system, const std::string& path, int unknown) {
  const std::string text = system.read(path).value_or("");
  int value = unknown;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && at == text.data() + text.size() ? value : unknown;
}

PciDevice described(HostApi& system, const PciAddress& address) {
  const std::string folder = kDevices + text_of(address) + "/";
  PciDevice device;
  device.address = address;
  device.class_code = hex_file(system, folder + "class");
  device.vendor = hex_file(system, folder + "vendor");
  device.device = hex_file(system, folder + "device");
  device.subsystem_vendor = hex_file(system, folder + "subsystem_vendor");
  device.subsystem_device = hex_file(system, folder + "subsystem_device");
  device.source = FactSource::sysfs;
  const bool compute = device.vendor == kNvidia || device.vendor == kAmd;
  if (compute && device.class_code && is_gpu_class(*device.class_code)) device.gpus.emplace_back().source = FactSource::sysfs;
  return device;
}

struct Width {
  int generation = 0;
  int lanes = 0;
};

Width most_of(HostApi& system, const PciAddress& address) {
  const std::string folder = kDevices + text_of(address) + "/";
  Width most{pci_generation_of(system.read(folder + "max_link_speed").value_or("")),
             number_file(system, folder + "max_link_width", 0)};
  if (most.lanes < 1 || most.lanes > 32) most.lanes = 0;
  return most;
}

// The port above a device is the device before it in its path, whether or not the tree contains it.
void set_link_speed(PciDevice& device, HostApi& system) {
  for (PciDevice& child : device.children) set_link_speed(child, system);
  Width link = most_of(system, device.address);
  if (link.generation == 0 || link.lanes == 0) return;
  const std::vector<PciAddress> path = addresses_in(system.real_path(kDevices + text_of(device.address)).value_or(""));
  if (path.size() > 1) {
    const Width above = most_of(system, path[path.size() - 2]);
    if (above.generation > 0) link.generation = std::min(link.generation, above.generation);
    if (above.lanes > 0) link.lanes = std::min(link.lanes, above.lanes);
  }
  device.generation = link.generation;
  device.lanes = link.lanes;
  device.link_source = FactSource::sysfs;
}

}  // namespace

PciDevice* find_device(TopologyHost& host, const PciAddress& address) {
  for (NumaNode& node : host.nodes)
    if (PciDevice* const device = find_in(node.devices, address)) return device;
  return nullptr;
}

std::optional<PciAddress> last_address(const std::string& path) {
  const std::vector<PciAddress> all = addresses_in(path);
  return all.empty() ? std::nullopt : std::optional(all.back());
}

void add_numa_nodes(TopologyHost& host, HostApi& system) {
  const std::string folder = "/sys/devices/system/node/";
  for (const std::string& name : system.list(folder)) {
    const auto number = name.starts_with("node") ? parse_uint(std::string_view(name).substr(4)) : std::nullopt;
    if (!number || *number > 4095) continue;
    NumaNode& node = host.nodes.emplace_back();
    node.number = static_cast<int>(*number);
    node.cores = CoreSet::parse(system.read(folder + name + "/cpumap").value_or("")).value_or(CoreSet());
    node.source = FactSource::sysfs;
  }
  std::sort(host.nodes.begin(), host.nodes.end(), [](const auto& left, const auto& right) { return left.number < right.number; });
  if (host.nodes.empty()) {
    host.nodes.emplace_back().source = FactSource::assumed;
    host.nodes[0].cores = system.usable_cores();
  }
}

void add_pci_device(TopologyHost& host, HostApi& system, const PciAddress& address) {
  const std::string place = kDevices + text_of(address);
  const int number = number_file(system, place + "/numa_node", -1);
  auto node = std::find_if(host.nodes.begin(), host.nodes.end(), [&](const NumaNode& each) { return each.number == number; });
  if (node == host.nodes.end()) node = host.nodes.begin();
  std::vector<PciDevice>* level = &node->devices;
  for (const PciAddress& step : addresses_in(system.real_path(place).value_or(text_of(address)))) {
    auto same = std::find_if(level->begin(), level->end(), [&](const PciDevice& each) { return each.address == step; });
    if (same == level->end()) same = level->insert(level->end(), described(system, step));
    level = &same->children;
  }
}

void add_pci_devices(TopologyHost& host, HostApi& system) {
  for (const std::string& name : system.list("/sys/bus/pci/devices")) {
    const auto address = parse_pci_address(name);
    if (!address) continue;
    const PciDevice device = described(system, *address);
    if (!device.gpus.empty() || (device.class_code && is_network_class(*device.class_code)))
      add_pci_device(host, system, *address);
  }
}

void set_link_speeds(TopologyHost& host, HostApi& system) {
  for (NumaNode& node : host.nodes)
    for (PciDevice& device : node.devices) set_link_speed(device, system);
}

}  // namespace seto
