#include "src/topology/graph/assumptions.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace seto {
namespace {

constexpr double kGiga = 1e9;

// The device of this address, in a host or in a list of devices, which may be const.
template <class Devices>
auto find_in(Devices& devices, const PciAddress& address) -> decltype(devices.data()) {
  for (auto& device : devices) {
    if (device.address == address) return &device;
    if (auto* const below = find_in(device.children, address)) return below;
  }
  return nullptr;
}

template <class Host>
auto find(Host& host, const PciAddress& address) -> decltype(host.nodes[0].devices.data()) {
  for (auto& node : host.nodes)
    if (auto* const device = find_in(node.devices, address)) return device;
  return nullptr;
}

template <class Value>
void fill(Value& hint, const Value& found, const Value& unknown) {
  if (hint == unknown) hint = found;
}

// Not `gdr`: in a file it says that the port reaches memory of GPUs, and of a running host only that a module is loaded.
void complete(NetPort& hint, const NetPort& found) {
  if (hint.speed_mbit == 0) hint.speed_source = found.speed_source;
  fill(hint.speed_mbit, found.speed_mbit, 0);
  fill(hint.dev, found.dev, -1);
  fill(hint.port, found.port, -1);
  fill(hint.latency_us, found.latency_us, {});
  fill(hint.guid, found.guid, {});
  fill(hint.max_connections, found.max_connections, -1);
  fill(hint.up, found.up, {});
  fill(hint.mtu, found.mtu, 0);
  fill(hint.default_route, found.default_route, false);
  fill(hint.addresses, found.addresses, {});
  if (!hint.rdma.is_known()) hint.rdma = found.rdma;
}

// A file may leave the number of a port out.
void complete(std::vector<NetPort>& hints, const std::vector<NetPort>& found) {
  for (NetPort& hint : hints) {
    const auto same = std::find_if(found.begin(), found.end(), [&](const NetPort& each) {
      return each.name == hint.name && (hint.port < 0 || each.port < 0 || each.port == hint.port);
    });
    if (same != found.end()) complete(hint, *same);
  }
}

void complete(PciDevice& hint, const TopologyHost& found) {
  for (PciDevice& child : hint.children) complete(child, found);
  const PciDevice* const same = find(found, hint.address);
  if (same == nullptr) return;
  fill(hint.class_code, same->class_code, {});
  fill(hint.vendor, same->vendor, {});
  fill(hint.device, same->device, {});
  fill(hint.subsystem_vendor, same->subsystem_vendor, {});
  fill(hint.subsystem_device, same->subsystem_device, {});
  if (hint.generation == 0 || hint.lanes == 0) hint.link_source = same->link_source;
  fill(hint.generation, same->generation, 0);
  fill(hint.lanes, same->lanes, 0);
  if (hint.gpus.empty()) hint.gpus = same->gpus;
  if (hint.gpus.size() == 1 && same->gpus.size() == 1) {
    Gpu& gpu = hint.gpus.front();
    fill(gpu.dev, same->gpus[0].dev, -1);
    fill(gpu.sm, same->gpus[0].sm, -1);
    fill(gpu.uuid, same->gpus[0].uuid, {});
    fill(gpu.product, same->gpus[0].product, {});
    fill(gpu.links, same->gpus[0].links, {});
  }
  if (hint.ports.empty()) hint.ports = same->ports;
  complete(hint.ports, same->ports);
}

// Adds what the hint lacks of a device and of those below it: to the device itself if the hint has it, else to `fresh`, if a GPU
// or a port is in it.
void add_new(TopologyHost& hint, const PciDevice& found, std::vector<PciDevice>& fresh) {
  PciDevice rest = found;
  rest.children.clear();
  for (const PciDevice& child : found.children) add_new(hint, child, rest.children);
  if (PciDevice* const known = find(hint, found.address)) {
    std::move(rest.children.begin(), rest.children.end(), std::back_inserter(known->children));
  } else if (!rest.children.empty() || !rest.gpus.empty() || !rest.ports.empty()) {
    fresh.push_back(std::move(rest));
  }
}

void add_missing(TopologyHost& hint, const NumaNode& found) {
  auto node =
      std::find_if(hint.nodes.begin(), hint.nodes.end(), [&](const NumaNode& each) { return each.number == found.number; });
  if (node == hint.nodes.end()) {
    NumaNode empty = found;
    empty.devices.clear();
    hint.nodes.push_back(std::move(empty));
    node = hint.nodes.end() - 1;
  }
  fill(node->cores, found.cores, {});
  fill(node->arch, found.arch, {});
  fill(node->vendor, found.vendor, {});
  fill(node->family, found.family, -1);
  fill(node->model, found.model, -1);
  std::vector<PciDevice> fresh;
  for (const PciDevice& device : found.devices) add_new(hint, device, fresh);
  std::move(fresh.begin(), fresh.end(), std::back_inserter(node->devices));
  complete(node->ports, found.ports);
  for (const NetPort& port : found.ports) {
    const bool known =
        std::any_of(node->ports.begin(), node->ports.end(), [&](const NetPort& each) { return each.name == port.name; });
    if (!known) node->ports.push_back(port);
  }
}

// Counts of what is guessed of one host, so that a host with eight equal GPUs gets one note and not eight.
struct Guesses {
  int gpus = 0, ports = 0, pci_links = 0, speeds = 0, unknown_devices = 0, self_links = 0;
};

void assume(NetPort& port, Guesses& guesses) {
  if (port.speed_mbit > 0) return;
  port.speed_mbit = 10'000;
  port.speed_source = FactSource::assumed;
  ++guesses.speeds;
}

void assume(PciDevice& device, Guesses& guesses) {
  for (PciDevice& child : device.children) assume(child, guesses);
  if (!device.class_code && device.gpus.empty() && device.ports.empty() && device.children.empty()) ++guesses.unknown_devices;
  if (device.class_code && is_gpu_class(*device.class_code) && device.gpus.empty()) {
    device.gpus.emplace_back().source = FactSource::assumed;
    ++guesses.gpus;
  }
  if (device.class_code && is_network_class(*device.class_code) && device.ports.empty()) {
    NetPort port;
    port.source = FactSource::assumed;
    device.ports.push_back(std::move(port));
    ++guesses.ports;
  }
  if (device.generation == 0 || device.lanes == 0) {
    fill(device.generation, 3, 0);
    fill(device.lanes, 16, 0);
    device.link_source = FactSource::assumed;
    ++guesses.pci_links;
  }
  for (NetPort& port : device.ports) assume(port, guesses);
  for (Gpu& gpu : device.gpus) {
    const auto to_itself = [&](const GpuLink& link) { return link.target == device.address; };
    guesses.self_links += static_cast<int>(std::erase_if(gpu.links, to_itself));
  }
}

// The rates that NCCL assumes between the packages of a host: AMD 16, ARM 6, POWER9 32, Intel 6 to 40 gigabytes a second by
// model.
std::optional<double> interconnect_rate(const NumaNode& node) {
  if (node.vendor == "AuthenticAMD") return 16 * kGiga;
  if (node.arch == "arm64") return 6 * kGiga;
  if (node.arch == "ppc64") return 32 * kGiga;
  if (node.vendor != "GenuineIntel") return std::nullopt;
  if (node.family != 6) return 6 * kGiga;
  return node.model >= 0xcf ? 40 * kGiga : node.model >= 0x8f ? 22 * kGiga : node.model >= 0x55 ? 10 * kGiga : 6 * kGiga;
}

void note(TopologyHost& host, int count, const char* what) {
  if (count > 0) host.notes.push_back(std::string(what) + ": " + std::to_string(count));
}

}  // namespace

std::optional<double> gpu_link_bytes_per_second(const Gpu& gpu) {
  // xGMI of MI100, MI250 and MI300 by AMD's data sheets; NVLink 1 to 5 by NVIDIA's.
  if (gpu.gcn == "gfx908") return 46 * kGiga;
  if (gpu.gcn == "gfx90a") return 50 * kGiga;
  if (gpu.gcn == "gfx942" || gpu.gcn == "gfx950") return 64 * kGiga;
  if (gpu.sm >= 100) return 50 * kGiga;
  if (gpu.sm == 86 || gpu.sm == 89) return 14.0625 * kGiga;
  if (gpu.sm >= 70) return 25 * kGiga;
  if (gpu.sm >= 60) return 20 * kGiga;
  return std::nullopt;
}

void complete(TopologyHost& hint, const TopologyHost& found) {
  for (NumaNode& node : hint.nodes)
    for (PciDevice& device : node.devices) complete(device, found);
  for (const NumaNode& node : found.nodes) add_missing(hint, node);
  if (!hint.interconnect.known()) hint.interconnect = found.interconnect;
  hint.notes.insert(hint.notes.end(), found.notes.begin(), found.notes.end());
}

void assume_missing(TopologyHost& host) {
  Guesses guesses;
  for (NumaNode& node : host.nodes) {
    for (PciDevice& device : node.devices) assume(device, guesses);
    for (NetPort& port : node.ports) assume(port, guesses);
  }
  note(host, guesses.gpus, "devices of GPU class without a description, taken for GPUs");
  note(host, guesses.ports, "network devices without a description, taken to have one port");
  note(host, guesses.speeds, "ports without a speed, taken to carry 10 Gbit/s");
  note(host, guesses.pci_links, "PCI links without a speed, taken to have 16 lanes of generation 3");
  note(host, guesses.self_links, "links of a GPU to itself, left out");
  note(host, guesses.unknown_devices, "devices without a class, which remain unknown");
  if (!host.interconnect.known() && host.nodes.size() > 1) {
    host.interconnect.bytes_per_second = interconnect_rate(host.nodes.front());
    host.interconnect.source = FactSource::assumed;
    note(host, 1, "interconnect without a rate, taken to be the one of the processor's vendor");
  }
}

void assume_missing(TopologyGraph& graph) {
  for (TopologyHost& host : graph.hosts) assume_missing(host);
}

}  // namespace seto
