#include <gtest/gtest.h>

#include <string>

#include "src/topology/graph/assumptions.h"
#include "src/topology/graph/graph_views.h"
#include "src/topology/xml/topology_file.h"
#include "tests/support/h100_host.h"

namespace seto {
namespace {

TopologyHost host_of(const std::string& text) {
  auto graph = read_topology(text);
  EXPECT_TRUE(graph.ok()) << graph.status().text();
  if (!graph.ok() || graph.value().hosts.size() != 1) return {};
  return std::move(graph.value().hosts[0]);
}

TEST(TopologyMachines, EightH100AreJoinedBySwitches) {
  const TopologyHost host = host_of(testing::h100_host_xml());
  const std::vector<GpuPlace> gpus = gpus_of(host);
  ASSERT_EQ(gpus.size(), 8U);
  EXPECT_TRUE(all_joined_by_switches(host));
  for (const GpuPlace& from : gpus) {
    EXPECT_DOUBLE_EQ(gpu_bytes_per_second(from).value_or(0), 18 * 25e9);
    for (const GpuPlace& to : gpus) {
      if (from.gpu == to.gpu) continue;
      const auto link = gpu_link(from, to);
      ASSERT_TRUE(link);
      EXPECT_EQ(link->medium, LinkMedium::nvswitch);
      EXPECT_EQ(link->source, FactSource::assumed) << "the file states a count, not a rate";
    }
  }
}

TEST(TopologyMachines, TheNearestNicOfEachH100IsUnderItsOwnSwitch) {
  const TopologyHost host = host_of(testing::h100_host_xml());
  for (const GpuPlace& gpu : gpus_of(host)) {
    const std::vector<PortPlace> near = nearest_ports(host, gpu);
    ASSERT_EQ(near.size(), 2U) << "both ports of one NIC";
    for (const PortPlace& port : near) {
      EXPECT_EQ(port.path.front(), gpu.path.front()) << "the same switch is above both";
      EXPECT_EQ(distance(gpu, port), PciDistance::several_switches);
    }
    EXPECT_EQ(near[0].port->name, "mlx5_" + std::to_string(2 * gpu.gpu->dev));
  }
}

// Clouds ship such files: addresses and speeds of the PCI tree, and nothing about what the devices are.
TEST(TopologyMachines, APartialFileIsAHintThatIsCompletedAndMarked) {
  const std::string hint = R"(<!-- a hint -->
<system version="1">
  <cpu numaid="0">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">  <!-- switch -->
      <pci busid="0001:00:00.0" class="0x030200" link_speed="" link_width="0"/>
      <pci busid="0101:00:00.0"/>
    </pci>
    <pci busid="0002:00:00.0" class="0x020700" link_speed="16 GT/s" link_width="16"/>
    <pci busid="0000:00:16.0"/>
  </cpu>
</system>)";
  TopologyHost host = host_of(hint);
  const TopologyHost found = host_of(R"(<system version="1"><cpu numaid="0" affinity="0000000f" vendor="AuthenticAMD">
<pci busid="0101:00:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="8"><nic><net name="mlx5_0" speed="400000"/></nic></pci>
<pci busid="0009:00:00.0" class="0x030200"><gpu dev="3" sm="90"/></pci></cpu></system>)");
  complete(host, found);
  assume_missing(host);

  const std::vector<GpuPlace> gpus = gpus_of(host);
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].gpu->source, FactSource::assumed);
  EXPECT_EQ(gpus[0].path.back()->link_source, FactSource::assumed) << "no speed was stated";
  EXPECT_EQ(gpus[1].gpu->dev, 3) << "discovery knows a GPU that the hint lacks";

  const std::vector<PortPlace> ports = ports_of(host);
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_EQ(ports[0].port->name, "mlx5_0") << "joined by PCI address";
  EXPECT_EQ(ports[0].path.size(), 2U) << "the switch is the hint's";
  EXPECT_EQ(ports[0].path.back()->lanes, 8);
  EXPECT_EQ(ports[1].port->source, FactSource::assumed);
  EXPECT_EQ(ports[1].port->speed_source, FactSource::assumed);
  EXPECT_EQ(host.nodes[0].cores.count(), 4U);

  const std::string notes = ::testing::PrintToString(host.notes);
  EXPECT_NE(notes.find("taken for GPUs: 1"), std::string::npos) << notes;
  EXPECT_NE(notes.find("devices without a class, which remain unknown: 1"), std::string::npos) << notes;
}

TEST(TopologyMachines, PortsOfAHintAreCompletedToo) {
  TopologyHost host = host_of(R"(<system version="1"><cpu numaid="0"><pci busid="0000:01:00.0" class="0x020700">
<nic><net name="mlx5_0"/><net name="mlx5_0" port="2" speed="100000" gdr="0"/><net name="mlx5_9"/></nic></pci></cpu></system>)");
  TopologyHost found = host_of(R"(<system version="1"><cpu numaid="0"><pci busid="0000:01:00.0" class="0x020700">
<nic><net name="mlx5_0" port="1" speed="400000" gdr="1"/><net name="mlx5_0" port="2" speed="200000" gdr="1"/></nic></pci></cpu></system>)");
  for (NetPort& port : found.nodes[0].devices[0].ports) {
    port.up = true;
    port.mtu = 4'096;
    port.rdma = {"Ethernet", "", 3, "10.0.0.1", "RoCE v2"};
    port.speed_source = FactSource::sysfs;
  }
  complete(host, found);
  const std::vector<NetPort>& ports = host.nodes[0].devices[0].ports;
  ASSERT_EQ(ports.size(), 3U);
  EXPECT_EQ(ports[0].port, 1);
  EXPECT_EQ(ports[0].speed_mbit, 400'000);
  EXPECT_EQ(ports[0].speed_source, FactSource::sysfs);
  EXPECT_EQ(ports[0].gdr, std::nullopt);
  EXPECT_EQ(ports[0].rdma.gid_text, "10.0.0.1");
  EXPECT_EQ(ports[1].speed_mbit, 100'000) << "what the file states stays";
  EXPECT_EQ(ports[1].speed_source, FactSource::file);
  EXPECT_EQ(ports[1].gdr, false);
  EXPECT_EQ(ports[1].mtu, 4'096);
  EXPECT_EQ(ports[1].up, true);
  EXPECT_EQ(ports[2].mtu, 0) << "this host has no such port";
}

TEST(TopologyMachines, DevicesThatAHintLacksAreAddedBelowTheSwitchThatItHas) {
  TopologyHost host =
      host_of(R"(<system version="1"><cpu numaid="0"><pci busid="0000:01:00.0" class="0x060400"/></cpu></system>)");
  const TopologyHost found = host_of(R"(<system version="1"><cpu numaid="0"><pci busid="0000:01:00.0" class="0x060400">
<pci busid="0000:02:00.0" class="0x030200"><gpu dev="0"/></pci><pci busid="0000:03:00.0" class="0x030200"><gpu dev="1"/></pci>
</pci></cpu><cpu numaid="1"><pci busid="0000:04:00.0" class="0x060400"><pci busid="0000:05:00.0"><gpu dev="2"/></pci></pci></cpu></system>)");
  complete(host, found);
  const std::vector<GpuPlace> gpus = gpus_of(host);
  ASSERT_EQ(gpus.size(), 3U);
  EXPECT_EQ(distance(gpus[0], gpus[1]), PciDistance::one_switch);
  EXPECT_EQ(gpus[2].node->number, 1);
  EXPECT_EQ(host.nodes[0].devices.size(), 1U);
}

TEST(TopologyMachines, ALinkOfAGpuToItselfIsLeftOutAndSaid) {
  TopologyHost host = host_of(R"(<system version="1"><cpu numaid="0"><pci busid="0001:00:00.0" class="0x030200">
<gpu dev="0" sm="80"><nvlink target="0001:00:00.0" count="12" tclass="0x030200"/></gpu></pci></cpu></system>)");
  EXPECT_FALSE(gpu_bytes_per_second(gpus_of(host)[0]));
  assume_missing(host);
  EXPECT_TRUE(gpus_of(host)[0].gpu->links.empty());
  EXPECT_NE(::testing::PrintToString(host.notes).find("links of a GPU to itself, left out: 1"), std::string::npos);
}

TEST(TopologyMachines, AmdsVariantIsReadAndWritten) {
  const std::string text = R"(<system version="2">
  <cpu numaid="0" affinity="000000ff" arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="17">
    <pci busid="0000:0c:00.0" class="0x038000" vendor="0x1002" device="0x74a1" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="94" gcn="gfx942" arch="38911" rank="0" gdr="1">
        <xgmi target="0000:22:00.0" count="1" tclass="0x038000"/>
      </gpu>
    </pci>
    <pci busid="0000:22:00.0" class="0x038000" vendor="0x1002" device="0x74a1" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="1" sm="94" gcn="gfx942" arch="38911" rank="1" gdr="1">
        <xgmi target="0000:0c:00.0" count="1" tclass="0x038000"/>
      </gpu>
    </pci>
  </cpu>
</system>
)";
  const auto graph = read_topology(text);
  ASSERT_TRUE(graph.ok()) << graph.status().text();
  EXPECT_EQ(write_nccl(graph.value()), text);
  const std::vector<GpuPlace> gpus = gpus_of(graph.value().hosts[0]);
  const auto link = gpu_link(gpus[0], gpus[1]);
  ASSERT_TRUE(link);
  EXPECT_EQ(link->medium, LinkMedium::xgmi);
  EXPECT_DOUBLE_EQ(link->bytes_per_second.value_or(0), 64e9);
}

TEST(TopologyMachines, AHiddenSwitchOfAVirtualMachineJoinsItsGpus) {
  const std::string gpu = R"("><gpu sm="90"><nvlink target="fffffff:ffff:ff" count="18" tclass="0x068000"/></gpu></pci>)";
  const TopologyHost host = host_of("<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:01:00.0" + gpu +
                                    "<pci busid=\"0000:02:00.0" + gpu + "</cpu></system>");
  EXPECT_TRUE(all_joined_by_switches(host));
}

TEST(TopologyMachines, HwlocsFileGivesNodesDevicesAndInterfaces) {
  const TopologyHost host = host_of(R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x0000ffff" gp_index="1">
    <info name="HostName" value="node7"/>
    <info name="Architecture" value="x86_64"/>
    <object type="Package" os_index="0" cpuset="0x000000ff">
      <info name="CPUVendor" value="AuthenticAMD"/>
      <info name="CPUFamilyNumber" value="25"/>
      <info name="CPUModelNumber" value="17"/>
      <object type="NUMANode" os_index="0" cpuset="0x000000ff" local_memory="1024"><page_type size="4096" count="3"/></object>
      <object type="Core" os_index="0" cpuset="0x00000001"/>
      <object type="Bridge" bridge_type="0-1" bridge_pci="0000:[00-20]">
        <object type="Bridge" bridge_type="1-1" pci_busid="0000:00:01.0" pci_type="0604 [1022:1483] [0000:0000] 00" pci_link_speed="31.507692">
          <object type="PCIDev" pci_busid="0000:01:00.0" pci_type="0302 [10de:2330] [10de:16c1] a1" pci_link_speed="63.015385">
            <object type="OSDev" name="cuda1" subtype="CUDA" osdev_type="5"/>
            <object type="OSDev" name="nvml1" osdev_type="1"><info name="NVIDIAUUID" value="GPU-12"/></object>
          </object>
        </object>
        <object type="PCIDev" pci_busid="0000:02:00.0" pci_type="0108 [144d:a824] [144d:a801] 00"/>
      </object>
    </object>
    <object type="Package" os_index="1" cpuset="0x0000ff00">
      <object type="NUMANode" os_index="1" cpuset="0x0000ff00"/>
      <object type="Bridge" bridge_type="0-1">
        <object type="PCIDev" pci_busid="0000:41:00.0" pci_type="0207 [15b3:1021] [15b3:0038] 00" pci_link_speed="63.015385">
          <object type="OSDev" name="ib0" osdev_type="2"/>
          <object type="OSDev" name="mlx5_0" osdev_type="3"/>
        </object>
      </object>
    </object>
  </object>
  <support name="discovery.pu"/>
</topology>)");
  EXPECT_EQ(host.name, "node7");
  ASSERT_EQ(host.nodes.size(), 2U);
  EXPECT_EQ(host.nodes[0].vendor, "AuthenticAMD");
  EXPECT_EQ(host.nodes[0].model, 17);
  EXPECT_EQ(host.nodes[1].cores.ranges(), "8-15");
  ASSERT_EQ(host.nodes[0].devices.size(), 1U) << "a disk is of no use here";
  const std::vector<GpuPlace> gpus = gpus_of(host);
  ASSERT_EQ(gpus.size(), 1U);
  EXPECT_EQ(gpus[0].gpu->dev, 1);
  EXPECT_EQ(gpus[0].gpu->uuid, "GPU-12");
  EXPECT_EQ(gpus[0].path.size(), 2U);
  EXPECT_EQ(gpus[0].path.back()->generation, 5);
  EXPECT_EQ(gpus[0].path.back()->lanes, 16);
  EXPECT_EQ(gpus[0].path.back()->class_code, 0x030200U);
  const std::vector<PortPlace> ports = ports_of(host);
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_EQ(ports[1].port->name, "mlx5_0");
  EXPECT_EQ(distance(gpus[0], ports[1]), PciDistance::other_node);
}

TEST(TopologyMachines, BadFilesOfHwlocAreRefused) {
  const auto refused = [](const std::string& inside) {
    const auto graph = read_topology("<topology>\n<object type=\"Machine\">" + inside + "</object></topology>");
    return graph.ok() ? std::string("it was read") : std::string(graph.status().text());
  };
  EXPECT_EQ(refused("<object type=\"NUMANode\" os_index=\"x\"/>").rfind("line 2: <object>: os_index: 'x' is not a number", 0),
            0U);
  EXPECT_EQ(refused("<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0xzz\"/>"),
            "line 2: <object>: cpuset is not a mask of cores such as 0x000000ff");
  EXPECT_EQ(refused("<object type=\"PCIDev\" pci_busid=\"1\"/>"),
            "line 2: <object>: pci_busid: '1' is not a PCI address such as 0000:3b:00.0");
  EXPECT_EQ(refused("<object type=\"PCIDev\" pci_busid=\"0000:01:00.0\"/>\n<object type=\"PCIDev\" pci_busid=\"0000:01:00.0\"/>"),
            "line 3: <object>: pci_busid 0000:01:00.0 is there twice: the first is on line 2");
  EXPECT_EQ(std::string(read_topology("<topology/>").status().text()), "line 1: <topology>: holds no object");
}

}  // namespace
}  // namespace seto
