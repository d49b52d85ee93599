#include "src/topology/draw/topology_text.h"

#include <gmock/gmock.h>

#include <string>

#include "src/topology/draw/number_words.h"
#include "src/topology/graph/assumptions.h"

namespace seto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Two sites; one has a host with a switch, a GPU and a NIC, the other an empty host.
TopologyGraph two_sites() {
  TopologyGraph graph;
  graph.sites.resize(2);
  graph.sites[0].name = "tokyo";
  graph.sites[1].name = "osaka";
  graph.sites[0].uplink.bytes_per_second = 1.25e8;
  graph.sites[0].uplink.source = FactSource::file;
  graph.hosts.resize(2);
  graph.hosts[0].name = "a";
  graph.hosts[1].name = "b";
  graph.hosts[1].site = 1;
  PciDevice gpu;
  gpu.address.bus = 2;
  gpu.class_code = 0x030200;
  gpu.generation = 5;
  gpu.lanes = 16;
  gpu.gpus.emplace_back().sm = 90;
  gpu.gpus[0].dev = 0;
  gpu.gpus[0].source = FactSource::nvml;
  gpu.gpus[0].links = {{PciAddress{0, 0xa0, 0, 0}, 0x068000, 18}};
  PciDevice nic;
  nic.address.bus = 3;
  nic.class_code = 0x020000;
  nic.ports.emplace_back().name = "mlx5_0";
  nic.ports[0].speed_mbit = 200'000;
  nic.ports[0].speed_source = FactSource::verbs;
  PciDevice root;
  root.address.bus = 1;
  root.class_code = 0x060400;
  root.children = {gpu, nic};
  graph.hosts[0].nodes.resize(1);
  graph.hosts[0].nodes[0].number = 0;
  graph.hosts[0].nodes[0].devices = {root};
  LinkFacts& link = graph.between(0, 1);
  link.bytes_per_second = 1.1e8;
  link.round_trip_s = 0.06;
  link.loss = 0.001;
  link.age_s = 12;
  link.source = FactSource::measured;
  return graph;
}

TEST(TopologyText, StatesEachFactWithItsSource) {
  TopologyGraph graph = two_sites();
  assume_missing(graph);
  const std::string text = topology_text(graph);
  EXPECT_THAT(text, HasSubstr("site tokyo: 1 host\n  uplink: 125 MB/s (file)\n  host a: 1 NUMA node, 1 GPU, 1 port\n"));
  EXPECT_THAT(text, HasSubstr("      PCI switch 0000:01:00.0 [file], PCI 3.0 x16: 15.8 GB/s (assumed)\n"));
  EXPECT_THAT(text, HasSubstr("        GPU 0000:02:00.0 [file], PCI 5.0 x16: 63.0 GB/s (file)\n          GPU 0, sm 90 [NVML]\n"
                              "            18 NVLink to a switch at 0000:a0:00.0: 450 GB/s (assumed of its model)\n"
                              "            nearest ports: mlx5_0\n"));
  EXPECT_THAT(text, HasSubstr("port mlx5_0: 25.0 GB/s (verbs) [file]\n"));
  EXPECT_THAT(text, HasSubstr("tokyo to osaka: 110 MB/s, 60.0 ms round trip, loss 0.1 % (measured, 12.0 s ago)\n"));
  EXPECT_THAT(text, HasSubstr("osaka to tokyo: not known\n"));
  EXPECT_THAT(text, HasSubstr("2 ranks, world 2\n"));
  EXPECT_THAT(text, HasSubstr("notes:\n  a: PCI links without a speed, taken to have 16 lanes of generation 3: 2\n"));
}

TEST(TopologyText, SaysHowAnRdmaPortWouldBeUsed) {
  TopologyGraph graph = two_sites();
  NetPort& port = graph.hosts[0].nodes[0].devices[0].children[1].ports[0];
  port.port = 1;
  port.mtu = 4'096;
  port.gdr = true;
  port.rdma = {"Ethernet", "", 3, "10.0.0.1", "RoCE v2"};
  EXPECT_THAT(topology_text(graph), HasSubstr("          port mlx5_0: 25.0 GB/s (verbs), MTU 4096, GPUDirect [file]\n"
                                              "            RDMA port 1, Ethernet, GID 3 (10.0.0.1): RoCE v2\n"));
  EXPECT_THAT(topology_json(graph),
              HasSubstr(R"("gpudirect":1,"rdma":{"link_layer":"Ethernet","gid_index":3,"gid":"10.0.0.1","why":"RoCE v2"})"));
  port.source = FactSource::sysfs;
  EXPECT_THAT(topology_text(graph), HasSubstr(", MTU 4096, nvidia_peermem is loaded [")) << "which no card need use";
  port.source = FactSource::file;
  port.gdr = false;
  port.rdma = {"Ethernet", "eth0", {}, "", "no GID"};
  EXPECT_THAT(topology_text(graph), HasSubstr(", no GPUDirect [file]\n"
                                              "            RDMA port 1, Ethernet, by software over eth0: no GID\n"));
}

TEST(TopologyText, JsonLeavesOutWhatIsNotKnown) {
  const std::string json = topology_json(two_sites());
  EXPECT_THAT(json, AllOf(HasSubstr(R"("address":"0000:02:00.0","class":197120,"generation":5,"lanes":16,"source":"file")"),
                          HasSubstr(R"("uplink":{"medium":"wide area","bytes_per_second":1.25e+08,"source":"file"})"),
                          HasSubstr(R"("from":0,"to":1,"link":{)"), Not(HasSubstr("downlink")), Not(HasSubstr("uuid"))));
}

TEST(NumberWords, HaveThreeDigitsAndAUnit) {
  EXPECT_EQ(rate_words(63'015'384'615), "63.0 GB/s");
  EXPECT_EQ(rate_words(450e9), "450 GB/s");
  EXPECT_EQ(rate_words(999.96e6), "1000 MB/s");
  EXPECT_EQ(rate_words(0), "0 B/s");
  EXPECT_EQ(time_words(0.0603), "60.3 ms");
  EXPECT_EQ(time_words(12e-6), "12.0 us");
  EXPECT_EQ(link_words(LinkFacts()), "not known");
}

}  // namespace
}  // namespace seto
