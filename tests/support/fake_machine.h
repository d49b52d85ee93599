#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/topology/discovery/host_api.h"
#include "src/topology/discovery/hwloc_api.h"
#include "src/topology/discovery/nvml_api.h"

namespace seto::testing {

// The sources of discovery as values. Folders follow from the paths of files.
class FakeHost final : public HostApi {
 public:
  std::map<std::string, std::string> files;
  std::map<std::string, std::string> links;  // path -> what it leads to
  std::vector<Address> known_addresses;
  CoreSet cores;

  std::optional<std::string> read(const std::string& path) override {
    const auto at = files.find(path);
    return at == files.end() ? std::nullopt : std::optional(at->second);
  }
  std::vector<std::string> list(const std::string& folder) override {
    const std::string prefix = folder.ends_with('/') ? folder : folder + "/";
    std::vector<std::string> names;
    for (const auto* const all : {&files, &links})
      for (const auto& [path, text] : *all) {
        if (!path.starts_with(prefix)) continue;
        std::string name = path.substr(prefix.size(), path.find('/', prefix.size()) - prefix.size());
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
      }
    std::sort(names.begin(), names.end());
    return names;
  }
  std::optional<std::string> real_path(const std::string& path) override {
    const auto at = links.find(path);
    return at == links.end() ? std::nullopt : std::optional(at->second);
  }
  std::vector<Address> addresses() override { return known_addresses; }
  CoreSet usable_cores() override { return cores; }
};

class FakeHwloc final : public HwlocApi {
 public:
  Result<std::string> xml = failure(Code::unavailable, "cannot open it: libhwloc.so.15 is not there");
  Result<std::string> machine_xml() override { return xml; }
};

class FakeNvml final : public NvmlApi {
 public:
  Result<std::vector<Gpu>> known = failure(Code::unavailable, "cannot open it: libnvidia-ml.so.1 is not there");
  Result<std::vector<Gpu>> gpus() override { return known; }
  Result<Gpu> gpu(const PciAddress& address) override {
    SETO_TRY(known.status());
    for (const Gpu& each : known.value())
      if (each.address == address) return each;
    return failure(Code::unavailable, "no GPU at this address");
  }
};

struct FakeMachine {
  FakeHost host;
  FakeHwloc hwloc;
  FakeNvml nvml;
};

inline std::string bus_text(int bus) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0000:%02x:00.0", static_cast<unsigned>(bus));
  return text.data();
}

// A PCI function of sysfs below the functions of `path`.
inline void add_pci(FakeHost& host, const std::vector<int>& path, const char* code, const char* vendor, const char* speed) {
  std::string place = "/sys/devices/pci0000:00";
  for (const int bus : path) place += "/" + bus_text(bus);
  const std::string folder = "/sys/bus/pci/devices/" + bus_text(path.back());
  host.links[folder] = place;
  host.files[folder + "/class"] = code;
  host.files[folder + "/vendor"] = vendor;
  host.files[folder + "/max_link_speed"] = speed;
  host.files[folder + "/max_link_width"] = "16";
}

// Two NUMA nodes and eight H100, each with an RDMA NIC under its own PCI switch; four links of each GPU lead to each of four
// switches, and a fifth one to the first two.
inline FakeMachine h100_machine() {
  FakeMachine machine;
  FakeHost& host = machine.host;
  for (std::size_t core = 0; core < 64; ++core) host.cores.add(core);
  std::string xml =
      "<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"0xffffffff,0xffffffff\">"
      "<info name=\"HostName\" value=\"gpu-host\"/><info name=\"Architecture\" value=\"x86_64\"/>\n";
  std::vector<NvmlApi::Gpu> gpus;
  for (int node = 0; node < 2; ++node) {
    const std::string cores = node == 0 ? "0xffffffff" : "0xffffffff,0x00000000";
    xml += "<object type=\"Package\" cpuset=\"" + cores + "\"><info name=\"CPUVendor\" value=\"GenuineIntel\"/>" +
           "<info name=\"CPUFamilyNumber\" value=\"6\"/><info name=\"CPUModelNumber\" value=\"143\"/>\n" +
           "<object type=\"NUMANode\" os_index=\"" + std::to_string(node) + "\" cpuset=\"" + cores + "\"/>\n" +
           "<object type=\"Bridge\" bridge_type=\"0-1\">\n";
    for (int i = 4 * node; i < 4 * node + 4; ++i) {
      const int bus = 0x10 + 0x10 * i;
      const std::string rdma = "mlx5_" + std::to_string(i);
      xml += "<object type=\"Bridge\" bridge_type=\"1-1\" pci_busid=\"" + bus_text(bus) +
             "\" pci_type=\"0604 [1000:c030] [1000:1003] b0\" pci_link_speed=\"63.015385\">\n" +
             "<object type=\"PCIDev\" pci_busid=\"" + bus_text(bus + 1) +
             "\" pci_type=\"0302 [10de:2330] [10de:16c1] a1\" pci_link_speed=\"4.000000\"/>\n" +
             "<object type=\"PCIDev\" pci_busid=\"" + bus_text(bus + 2) +
             "\" pci_type=\"0207 [15b3:1021] [15b3:0038] 00\" pci_link_speed=\"63.015385\">" + "<object type=\"OSDev\" name=\"" +
             rdma + "\" osdev_type=\"3\"/></object>\n</object>\n";
      add_pci(host, {bus}, "0x060400", "0x1000", "32.0 GT/s PCIe");
      add_pci(host, {bus, bus + 1}, "0x030200", "0x10de", "32.0 GT/s PCIe");
      add_pci(host, {bus, bus + 2}, "0x020700", "0x15b3", "32.0 GT/s PCIe");
      const std::string folder = "/sys/class/infiniband/" + rdma;
      host.links[folder + "/device"] = "/sys/devices/pci0000:00/" + bus_text(bus) + "/" + bus_text(bus + 2);
      host.files[folder + "/node_guid"] = "9803:9b03:00ab:000" + std::to_string(i);
      host.files[folder + "/ports/1/rate"] = "400 Gb/sec (4X NDR)";
      host.files[folder + "/ports/1/state"] = "4: ACTIVE";
      NvmlApi::Gpu& gpu = gpus.emplace_back();
      gpu.address = *parse_pci_address(bus_text(bus + 1));
      gpu.uuid = "GPU-" + std::to_string(i);
      gpu.product = "NVIDIA H100 80GB HBM3";
      gpu.compute_capability = 90;
      for (int link = 0; link < 18; ++link) gpu.links.push_back({parse_pci_address(bus_text(0xa0 + link % 4)), true});
    }
    xml += "</object></object>\n";
  }
  std::swap(gpus.front(), gpus.back());  // NVML's order is not that of the PCI tree
  machine.hwloc.xml = xml + "</object></topology>\n";
  machine.nvml.known = std::move(gpus);
  return machine;
}

// A virtual machine of two cores with one paravirtual NIC, without hwloc's library.
inline FakeMachine virtual_machine() {
  FakeMachine machine;
  FakeHost& host = machine.host;
  host.cores.add(0);
  host.cores.add(1);
  host.files["/proc/sys/kernel/hostname"] = "vm";
  host.files["/sys/devices/system/node/node0/cpumap"] = "3";
  host.files["/sys/devices/system/node/possible"] = "0";
  add_pci(host, {3}, "0x020000", "0x1af4", "Unknown");
  host.files["/sys/bus/pci/devices/0000:03:00.0/max_link_width"] = "255";
  host.files["/sys/bus/pci/devices/0000:03:00.0/numa_node"] = "-1";
  for (const char* const name : {"lo", "eth0", "ifb0"}) host.files["/sys/class/net/" + std::string(name) + "/mtu"] = "1500";
  host.files["/sys/class/net/eth0/operstate"] = "up";
  host.files["/sys/class/net/eth0/speed"] = "-1";
  host.links["/sys/class/net/eth0/device"] = "/sys/devices/pci0000:00/0000:03:00.0/virtio1";
  host.known_addresses = {{"lo", "127.0.0.1"}, {"eth0", "10.0.0.5"}, {"eth0", "fe80::1"}};
  host.files["/proc/net/route"] =
      "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
      "eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
      "eth0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0";
  host.files["/sys/fs/cgroup/cpu.max"] = "max 100000";
  return machine;
}

}  // namespace seto::testing
