#include "src/topology/discovery/discover.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "src/base/text.h"
#include "src/base/thread.h"
#include "src/topology/discovery/network_facts.h"
#include "src/topology/discovery/pci_facts.h"
#include "src/topology/graph/graph_views.h"
#include "src/topology/xml/topology_file.h"

namespace seto {
namespace {

constexpr std::uint32_t kGpuClass = 0x030200;
constexpr std::uint32_t kGpuSwitchClass = 0x068000;

void set_source(std::vector<PciDevice>& devices, FactSource source) {
  for (PciDevice& device : devices) {
    device.source = source;
    device.link_source = source;
    for (Gpu& gpu : device.gpus) gpu.source = source;
    for (NetPort& port : device.ports) port.source = source;
    set_source(device.children, source);
  }
}

// The frame of NUMA nodes and PCI devices.
TopologyHost frame(HostApi& system, HwlocApi& hwloc) {
  const Result<std::string> xml = hwloc.machine_xml();
  auto graph = xml.ok() ? read_topology(xml.value()) : Result<TopologyGraph>(xml.status());
  TopologyHost host;
  if (graph.ok() && !graph.value().hosts.empty()) {
    host = std::move(graph.value().hosts.front());
    for (NumaNode& node : host.nodes) {
      node.source = FactSource::hwloc;
      set_source(node.devices, FactSource::hwloc);
    }
  } else {
    host.notes.push_back("hwloc: " + std::string(graph.status().text()) + "; NUMA nodes and PCI devices are those of sysfs");
    add_numa_nodes(host, system);
    add_pci_devices(host, system);
  }
  if (host.name.empty()) host.name = plain_ascii(system.read("/proc/sys/kernel/hostname").value_or(""));
  return host;
}

// One bundle for each target.
std::vector<GpuLink> bundled(const std::vector<NvmlApi::Link>& links) {
  std::vector<GpuLink> bundles;
  for (const NvmlApi::Link& link : links) {
    const std::uint32_t target_class = link.to_switch ? kGpuSwitchClass : kGpuClass;
    const auto same = std::find_if(bundles.begin(), bundles.end(), [&](const GpuLink& each) {
      return each.target == link.remote && each.target_class == target_class;
    });
    if (same != bundles.end()) {
      ++same->count;
    } else {
      bundles.push_back({link.remote, target_class, 1, LinkMedium::nvlink});
    }
  }
  return bundles;
}

void describe(PciDevice& device, const NvmlApi::Gpu& known) {
  if (device.gpus.empty()) device.gpus.emplace_back();
  Gpu& gpu = device.gpus.front();
  gpu.source = FactSource::nvml;
  gpu.uuid = plain_ascii(known.uuid);
  gpu.product = plain_ascii(known.product);
  gpu.sm = known.compute_capability;
  gpu.links = bundled(known.links);
}

void add_gpus(TopologyHost& host, NvmlApi& nvml) {
  const auto found = nvml.gpus();
  if (!found.ok()) {
    host.notes.push_back("NVML: " + std::string(found.status().text()));
    return;
  }
  for (const NvmlApi::Gpu& known : found.value()) {
    PciDevice* device = find_device(host, known.address);
    if (device == nullptr) {
      host.notes.push_back("GPU " + text_of(known.address) + " is known to NVML only; its place in the PCI tree is not visible");
      device = &host.nodes.front().devices.emplace_back();
      device->address = known.address;
      device->class_code = kGpuClass;
      device->source = FactSource::nvml;
    }
    describe(*device, known);
  }
}

// The cores that a cgroup or an affinity leaves to this process.
void note_cores(TopologyHost& host, HostApi& system) {
  const CoreSet usable = system.usable_cores();
  std::size_t all = 0;
  std::size_t permitted = 0;
  for (const NumaNode& node : host.nodes) {
    all += node.cores.count();
    permitted += node.cores.both(usable).count();
  }
  if (permitted < all)
    host.notes.push_back("this process may use " + std::to_string(permitted) + " of " + std::to_string(all) +
                         " cores (cgroup or affinity): " + usable.ranges());
  const std::string quota = system.read("/sys/fs/cgroup/cpu.max").value_or("max");
  if (!quota.starts_with("max"))
    host.notes.push_back("the cgroup limits processor time to " + plain_ascii(quota) + " us (quota, period)");
}

}  // namespace

TopologyHost discover(HostApi& system, HwlocApi& hwloc, NvmlApi& nvml) {
  TopologyHost host = frame(system, hwloc);
  set_link_speeds(host, system);
  add_interfaces(host, system);
  add_rdma_ports(host, system);
  add_gpus(host, nvml);
  note_cores(host, system);
  const bool any_device =
      std::any_of(host.nodes.begin(), host.nodes.end(), [](const NumaNode& node) { return !node.devices.empty(); });
  if (!any_device)
    host.notes.push_back("no PCI device is visible (a container or a virtual machine): distances between devices are not known");
  return host;
}

TopologyHost discover_gpu(HostApi& system, NvmlApi& nvml, const PciAddress& address) {
  TopologyHost host;
  host.nodes.emplace_back();
  add_pci_device(host, system, address);
  set_link_speeds(host, system);
  PciDevice* const device = find_device(host, address);
  if (device == nullptr || (device->class_code && !is_gpu_class(*device->class_code))) return {};
  if (const Result<NvmlApi::Gpu> known = nvml.gpu(address); known.ok())
    describe(*device, known.value());
  else
    host.notes.push_back("NVML: " + std::string(known.status().text()));
  return host;
}

TopologyHost discover_gpu(std::shared_ptr<HostApi> system, std::shared_ptr<NvmlApi> nvml, const PciAddress& address,
                          Deadline until) {
  struct Asked {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    TopologyHost host;
  };
  const auto asked = std::make_shared<Asked>();
  Result<std::thread> thread = start_thread("seto-nvml", [asked, system = std::move(system), nvml = std::move(nvml), address] {
    TopologyHost host;
    try {
      host = discover_gpu(*system, *nvml, address);
    } catch (const std::bad_alloc&) {  // nothing is known then
      host.nodes.clear();
    }
    const std::lock_guard lock(asked->mutex);
    asked->host = std::move(host);
    asked->done = true;
    asked->changed.notify_all();
  });
  if (!thread.ok()) return {};
  bool done = false;
  {
    std::unique_lock lock(asked->mutex);
    while (!asked->done && !until.passed()) asked->changed.wait_for(lock, std::chrono::milliseconds(until.wait_ms()));
    done = asked->done;
  }
  if (!done) {
    thread.value().detach();
    return {};
  }
  thread.value().join();
  return std::move(asked->host);
}

TopologyHost discover_gpu_of_this_host(const PciAddress& address, Deadline until) {
  return discover_gpu(system_host(), system_nvml(), address, until);
}

TopologyHost discover_this_host() { return discover(*system_host(), *system_hwloc(), *system_nvml()); }

}  // namespace seto
