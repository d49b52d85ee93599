#include "src/topology/discovery/discover.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "src/topology/discovery/network_facts.h"
#include "src/topology/graph/graph_views.h"
#include "src/topology/xml/topology_file.h"
#include "tests/support/fake_machine.h"

namespace seto {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TopologyHost discovered(testing::FakeMachine& machine) { return discover(machine.host, machine.hwloc, machine.nvml); }

TEST(Discover, EightH100OfAHost) {
  testing::FakeMachine machine = testing::h100_machine();
  const TopologyHost host = discovered(machine);
  EXPECT_EQ(host.name, "gpu-host");
  ASSERT_EQ(host.nodes.size(), 2U);
  EXPECT_EQ(host.nodes[1].cores.ranges(), "32-63");
  EXPECT_EQ(host.nodes[1].source, FactSource::hwloc);
  const std::vector<GpuPlace> gpus = gpus_of(host);
  ASSERT_EQ(gpus.size(), 8U);
  EXPECT_TRUE(all_joined_by_switches(host));
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    EXPECT_EQ(gpus[i].gpu->uuid, "GPU-" + std::to_string(i)) << "joined by PCI address, in whatever order NVML lists them";
    EXPECT_EQ(gpus[i].gpu->dev, -1) << "NVML's number is not that of CUDA";
    EXPECT_EQ(gpus[i].gpu->source, FactSource::nvml);
    EXPECT_EQ(gpus[i].gpu->links.size(), 4U);
    EXPECT_DOUBLE_EQ(gpu_bytes_per_second(gpus[i]).value_or(0), 18 * 25e9);
    EXPECT_EQ(gpus[i].path.back()->generation, 5) << "hwloc saw the speed of an idle GPU";
    EXPECT_EQ(gpus[i].path.back()->link_source, FactSource::sysfs);
    const std::vector<PortPlace> near = nearest_ports(host, gpus[i]);
    ASSERT_EQ(near.size(), 1U);
    EXPECT_EQ(near[0].port->name, "mlx5_" + std::to_string(i));
    EXPECT_EQ(near[0].port->speed_mbit, 400'000);
    EXPECT_EQ(near[0].port->speed_source, FactSource::sysfs);
    EXPECT_EQ(near[0].port->guid, 0x98039b0300ab0000 + i);
  }
  EXPECT_THAT(host.notes, IsEmpty());
}

TEST(Discover, WhatIsDiscoveredIsWrittenAndReadAgain) {
  testing::FakeMachine machine = testing::h100_machine();
  TopologyGraph graph;
  graph.hosts.push_back(discovered(machine));
  const std::string text = write_nccl(graph);
  const auto again = read_topology(text);
  ASSERT_TRUE(again.ok()) << again.status().text();
  EXPECT_EQ(write_nccl(again.value()), text);
  EXPECT_TRUE(all_joined_by_switches(again.value().hosts[0]));
}

TEST(Discover, TheSameHostWithoutHwlocHasTheSameTree) {
  testing::FakeMachine machine = testing::h100_machine();
  machine.hwloc.xml = failure(Code::unavailable, "no library");
  const TopologyHost host = discovered(machine);
  EXPECT_THAT(host.notes, Contains(StartsWith("hwloc: no library; NUMA nodes and PCI devices are those of sysfs")));
  ASSERT_EQ(gpus_of(host).size(), 8U);
  const std::vector<GpuPlace> gpus = gpus_of(host);
  EXPECT_EQ(gpus[3].path.size(), 2U);
  EXPECT_EQ(nearest_ports(host, gpus[3])[0].port->name, "mlx5_3");
}

TEST(Discover, AVirtualMachineFallsBackAndSaysSo) {
  testing::FakeMachine machine = testing::virtual_machine();
  const TopologyHost host = discovered(machine);
  EXPECT_EQ(host.name, "vm");
  ASSERT_EQ(host.nodes.size(), 1U);
  EXPECT_EQ(host.nodes[0].source, FactSource::sysfs);
  const std::vector<PortPlace> ports = ports_of(host);
  ASSERT_EQ(ports.size(), 1U) << "neither loopback nor an interface without an address";
  const NetPort& port = *ports[0].port;
  EXPECT_EQ(port.name, "eth0");
  EXPECT_EQ(port.speed_mbit, 0) << "the driver states none";
  EXPECT_EQ(port.mtu, 1500);
  EXPECT_TRUE(port.default_route);
  EXPECT_EQ(port.up, true);
  EXPECT_THAT(port.addresses, ElementsAre("10.0.0.5", "fe80::1"));
  EXPECT_EQ(ports[0].path.back()->generation, 0) << "the speed is not known";
  EXPECT_THAT(host.notes, Contains(HasSubstr("libhwloc.so.15 is not there")));
  EXPECT_THAT(host.notes, Contains(StartsWith("NVML: cannot open it")));
}

TEST(Discover, AContainerWithoutPciDevicesSaysSo) {
  testing::FakeMachine machine;
  machine.host.cores.add(2);
  machine.host.files["/sys/devices/system/node/node0/cpumap"] = "ff";
  machine.host.files["/sys/class/net/eth0/speed"] = "10000";
  machine.host.files["/sys/fs/cgroup/cpu.max"] = "150000 100000";
  machine.host.known_addresses = {{"eth0", "172.17.0.2"}};
  machine.nvml.known = std::vector<NvmlApi::Gpu>();
  TopologyHost host = discovered(machine);
  EXPECT_THAT(host.notes, Contains("this process may use 1 of 8 cores (cgroup or affinity): 2"));
  EXPECT_THAT(host.notes, Contains("the cgroup limits processor time to 150000 100000 us (quota, period)"));
  EXPECT_THAT(host.notes, Contains(StartsWith("no PCI device is visible")));
  ASSERT_EQ(host.nodes[0].ports.size(), 1U);
  EXPECT_EQ(host.nodes[0].ports[0].speed_mbit, 10'000);

  // A container may have GPUs and hide the PCI tree.
  NvmlApi::Gpu gpu;
  gpu.address = {0, 0x41, 0, 0};
  gpu.compute_capability = 80;
  gpu.links = {{std::nullopt, true}};
  machine.nvml.known = std::vector{gpu};
  host = discovered(machine);
  ASSERT_EQ(gpus_of(host).size(), 1U);
  EXPECT_TRUE(gpus_of(host)[0].gpu->links[0].to_switch());
  EXPECT_THAT(host.notes, Contains(StartsWith("GPU 0000:41:00.0 is known to NVML only")));
}

TEST(Discover, OneGpuHasItsPathAndItsLinks) {
  testing::FakeMachine machine = testing::h100_machine();
  const PciAddress third = *parse_pci_address(testing::bus_text(0x31));
  const TopologyHost host = discover_gpu(machine.host, machine.nvml, third);
  ASSERT_EQ(gpus_of(host).size(), 1U) << "no other device is looked at";
  const GpuPlace gpu = gpus_of(host)[0];
  EXPECT_EQ(gpu.gpu->uuid, "GPU-2");
  EXPECT_DOUBLE_EQ(gpu_bytes_per_second(gpu).value_or(0), 18 * 25e9);
  ASSERT_EQ(gpu.path.size(), 2U);
  EXPECT_EQ(gpu.path.back()->address, third);
  EXPECT_EQ(gpu.path.back()->generation, 5);
  EXPECT_EQ(gpu.path.front()->lanes, 16);

  machine.nvml.known = failure(Code::unavailable, "no library");
  const TopologyHost without = discover_gpu(machine.host, machine.nvml, third);
  EXPECT_THAT(without.notes, ElementsAre("NVML: no library"));
  ASSERT_EQ(gpus_of(without).size(), 1U);
  EXPECT_EQ(gpus_of(without)[0].path.back()->generation, 5);
  EXPECT_THAT(gpus_of(without)[0].gpu->links, IsEmpty());

  const PciAddress nic = *parse_pci_address(testing::bus_text(0x32));
  EXPECT_THAT(gpus_of(discover_gpu(machine.host, machine.nvml, nic)), IsEmpty()) << "it is no GPU";
  EXPECT_THAT(gpus_of(discover_gpu(machine.host, machine.nvml, {0, 0xee, 0, 0})), IsEmpty()) << "there is no device";
}

// The driver of a GPU that has failed may keep NVML for ever.
TEST(Discover, OneGpuIsNotAwaitedForEver) {
  struct StuckNvml final : NvmlApi {
    std::promise<void> goes_on;
    Result<std::vector<Gpu>> gpus() override { return std::vector<Gpu>(); }
    Result<Gpu> gpu(const PciAddress& address) override {
      goes_on.get_future().wait();
      Gpu made;
      made.address = address;
      return made;
    }
  };
  const PciAddress third = *parse_pci_address(testing::bus_text(0x31));
  const auto host = std::make_shared<testing::FakeHost>(testing::h100_machine().host);
  const auto stuck = std::make_shared<StuckNvml>();
  EXPECT_THAT(gpus_of(discover_gpu(host, stuck, third, Deadline::after_ms(20))), IsEmpty());
  stuck->goes_on.set_value();
  const auto nvml = std::make_shared<testing::FakeNvml>(testing::h100_machine().nvml);
  const TopologyHost found = discover_gpu(host, nvml, third, Deadline::after_ms(60'000));
  EXPECT_EQ(gpus_of(found).size(), 1U);
}

TEST(Discover, NonsenseOfSourcesIsNoError) {
  testing::FakeMachine machine = testing::virtual_machine();
  machine.hwloc.xml = std::string("<topology>garbage");
  machine.host.files["/sys/class/net/eth0/mtu"] = "99999999999999";
  machine.host.files["/sys/class/infiniband/mlx5_0/ports/x/rate"] = "fast";
  machine.host.files["/sys/class/infiniband/mlx5_0/node_guid"] = "none";
  const TopologyHost host = discovered(machine);
  EXPECT_THAT(host.notes, Contains(HasSubstr("line 1: <topology> of line 1 is not closed")));
  EXPECT_THAT(host.notes, Contains("RDMA device mlx5_0 has no visible PCI device"));
}

// An RDMA NIC says by its driver's module whether it reads memory of GPUs; a software device lies where its interface is.
TEST(Discover, RdmaPortsHavePlaceAndKind) {
  testing::FakeMachine machine = testing::h100_machine();
  machine.host.files["/sys/module/nvidia_peermem/initstate"] = "live";
  machine.host.files["/sys/class/infiniband/mlx5_0/ports/1/link_layer"] = "Ethernet";
  machine.host.links["/sys/class/net/eth9/device"] = machine.host.links["/sys/class/infiniband/mlx5_7/device"];
  machine.host.files["/sys/class/infiniband/rxe0/parent"] = "eth9";
  machine.host.files["/sys/class/infiniband/rxe0/ports/1/state"] = "4: ACTIVE";
  machine.host.files["/sys/class/infiniband/rxe0/ports/1/link_layer"] = "Ethernet";
  TopologyHost host = discovered(machine);
  add_verbs(host, {{"mlx5_0", 1, {"", "", 3, "10.0.0.1", "RoCE v2"}, 4'096, 10'000},
                   {"rxe0", 1, {"Ethernet", "", 1, "10.0.0.2", "RoCE v2"}, 1'024, 10'000},
                   {"mlx5_0", 2, {"InfiniBand", "", {}, "", ""}, 0, 0}});
  const std::vector<PortPlace> ports = ports_of(host);
  const auto find = [&](const std::string& name) {
    const auto found = std::find_if(ports.begin(), ports.end(), [&](const PortPlace& one) { return one.port->name == name; });
    return found == ports.end() ? PortPlace{} : *found;
  };
  ASSERT_NE(find("mlx5_0").port, nullptr);
  const NetPort& nic = *find("mlx5_0").port;
  EXPECT_EQ(nic.gdr, true);
  EXPECT_EQ(nic.rdma, (RdmaPort{"Ethernet", "", 3, "10.0.0.1", "RoCE v2"})) << "the link layer is that of sysfs";
  EXPECT_EQ(nic.mtu, 4'096);
  EXPECT_EQ(nic.speed_mbit, 400'000) << "of sysfs, which comes first";
  ASSERT_NE(find("rxe0").port, nullptr);
  const NetPort& software = *find("rxe0").port;
  EXPECT_EQ(find("rxe0").node->number, 1) << "with the NIC that it works over";
  EXPECT_EQ(software.gdr, false);
  EXPECT_EQ(software.rdma.over, "eth9");
  EXPECT_EQ(software.speed_mbit, 10'000);
  EXPECT_EQ(software.speed_source, FactSource::verbs);
  EXPECT_EQ(find("mlx5_1").port->rdma.gid, std::nullopt);
  EXPECT_THAT(host.notes, IsEmpty());
}

TEST(Discover, AHostWithoutRdmaSaysSo) {
  testing::FakeMachine machine = testing::virtual_machine();
  EXPECT_THAT(discovered(machine).notes, Contains("RDMA: no device"));
}

// This machine, whatever it is: it has cores, and the result can be written and read.
TEST(Discover, ThisMachine) {
  TopologyGraph graph;
  graph.hosts.push_back(discover_this_host());
  ASSERT_FALSE(graph.hosts[0].nodes.empty());
  std::size_t cores = 0;
  for (const NumaNode& node : graph.hosts[0].nodes) cores += node.cores.count();
  EXPECT_GT(cores, 0U);
  EXPECT_FALSE(graph.hosts[0].name.empty());
  const auto again = read_topology(write_nccl(graph));
  EXPECT_TRUE(again.ok()) << again.status().text();
}

}  // namespace
}  // namespace seto
