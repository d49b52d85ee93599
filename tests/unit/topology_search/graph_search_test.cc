#include "src/topology/search/graph_search.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "src/topology/graph/assumptions.h"
#include "src/topology/graph/graph_views.h"
#include "src/topology/graph/join_graphs.h"
#include "src/topology/xml/topology_file.h"
#include "tests/support/h100_host.h"
#include "tests/support/random_topology.h"
#include "tests/support/seed.h"

namespace seto {
namespace {

TopologyGraph graph_of(const std::string& text) {
  auto graph = read_topology(text);
  EXPECT_TRUE(graph.ok()) << graph.status().text();
  TopologyGraph read = graph.ok() ? std::move(graph).value() : TopologyGraph();
  assume_missing(read);
  return read;
}

TEST(GraphSearch, RingsOfEightH100UseGpuLinksAndEachNicServesTheGpuBesideIt) {
  const TopologyGraph graph = graph_of(testing::h100_host_xml());
  const GraphChannels found = search_channels(graph);
  ASSERT_EQ(found.hosts.size(), 1U);
  const HostChannels& host = found.hosts[0];
  EXPECT_FALSE(host.rings.is_fallback);
  EXPECT_FALSE(host.trees.is_fallback);
  EXPECT_EQ(host.rings.worst_hop, HopKind::gpu_switch) << "no hop over PCI";
  EXPECT_EQ(host.trees.worst_hop, HopKind::gpu_switch);
  EXPECT_NEAR(host.rings.bytes_per_second(), 18 * 25e9, 1e6) << "all 18 links of each GPU";
  EXPECT_LT(host.rings.steps, 20'000U);
  ASSERT_EQ(host.rails.size(), 16U);
  std::vector<int> rails_of_gpu(8);
  const std::vector<GpuPlace> gpus = gpus_of(graph.hosts[0]);
  const std::vector<PortPlace> ports = ports_of(graph.hosts[0]);
  for (const Rail& rail : host.rails) {
    const auto gpu = static_cast<std::size_t>(rail.member);
    EXPECT_EQ(ports[rail.port].path.front(), gpus[gpu].path.front()) << "under the GPU's own switch";
    ++rails_of_gpu[gpu];
  }
  EXPECT_EQ(rails_of_gpu, std::vector<int>(8, 2));
  ASSERT_EQ(host.rings.channels.size(), 16U) << "a channel for each port";
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(host.rings.channels[i].size(), 8U);
    EXPECT_EQ(host.rings.channels[i].front(), host.rails[i].member);
  }
}

TEST(GraphSearch, ARingOfASiteVisitsEveryGpuOfUnevenHostsOnce) {
  const TopologyGraph eight = graph_of(testing::h100_host_xml());
  TopologyGraph two = eight;
  two.hosts[0].nodes.pop_back();
  two.hosts[0].nodes[0].devices.resize(2);
  auto joined = join_graphs({{eight, "a", 2}, {two, "a", 1}, {eight, "b", 1}});
  ASSERT_TRUE(joined.ok()) << joined.status().text();
  const GraphChannels found = search_channels(joined.value());
  ASSERT_EQ(found.sites.size(), 2U);
  EXPECT_EQ(found.sites[0].hosts, (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(found.sites[0].channels, 16U);
  EXPECT_NEAR(found.sites[0].ring_bytes_per_second, 4 * 25e9, 1) << "the four ports of the small host bind";
  EXPECT_NEAR(found.sites[1].ring_bytes_per_second, 16 * 25e9, 1);
  for (std::size_t channel = 0; channel < 16; ++channel) {
    const std::vector<SiteMember> ring = found.site_ring(0, channel);
    std::set<std::pair<std::size_t, int>> members;
    for (const SiteMember& each : ring) members.emplace(each.host, each.member);
    EXPECT_EQ(ring.size(), 18U);
    EXPECT_EQ(members.size(), 18U);
    EXPECT_EQ(ring[0].member, found.hosts[0].rails[channel].member) << "it enters beside its port";
  }
  EXPECT_EQ(found.sites[0].trees, (std::vector<TreeParents>{{-1, 0, 0}, {2, 2, -1}}));
  EXPECT_EQ(found.order.sites, (std::vector<int>{0, 1}));
}

// Clouds ship files that state a part of the PCI tree and nothing else.
TEST(GraphSearch, PartialFilesGetAnAnswer) {
  const TopologyGraph graph = graph_of(R"(<system version="1"><cpu numaid="0">
<pci busid="ffff:ff:01.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
<pci busid="0001:00:00.0" class="0x030200" link_speed="" link_width="0"/><pci busid="0101:00:00.0" class="0x020700"/></pci>
<pci busid="0002:00:00.0" class="0x030200"/></cpu>
<cpu numaid="1"><pci busid="0003:00:00.0" class="0x030200"/><pci busid="0000:00:16.0"/></cpu></system>)");
  const HostChannels host = search_channels(graph).hosts[0];
  ASSERT_EQ(host.rings.channels.front().size(), 3U);
  EXPECT_EQ(host.rings.worst_hop, HopKind::other_node);
  EXPECT_GT(host.rings.bytes_per_second(), 0);
  ASSERT_EQ(host.rails.size(), 1U);
  EXPECT_EQ(host.rails[0].member, 0) << "the GPU under the switch of the NIC";
  EXPECT_EQ(host.rails[0].distance, PciDistance::one_switch);
}

TEST(GraphSearch, AHostWithoutGpusIsOneMemberWithItsFastPorts) {
  TopologyGraph graph;
  TopologyHost& host = graph.hosts.emplace_back();
  host.nodes.resize(1);
  for (const int speed : {1'000, 25'000, 25'000, 100'000}) {
    NetPort port;
    port.speed_mbit = speed;
    port.up = speed != 100'000;
    host.nodes[0].ports.push_back(port);
  }
  const HostChannels found = search_channels(graph).hosts[0];
  EXPECT_EQ(found.rings.channels, (std::vector<RingOrder>{{0}}));
  ASSERT_EQ(found.rails.size(), 2U) << "one port is slow, and one is down";
  EXPECT_EQ(found.rails[0].port, 1U);
  EXPECT_EQ(found.rails[1].port, 2U);
}

TEST(GraphSearch, SitesAreOrderedByTheirLinks) {
  TopologyGraph graph;
  graph.sites.resize(4);
  for (std::size_t from = 0; from < 4; ++from)
    for (std::size_t to = 0; to < 4; ++to)
      if (from != to) graph.between(from, to).round_trip_s = (from + to) % 2 == 0 ? 0.02 : 0.2;  // 0 with 2, 1 with 3 are near
  EXPECT_NEAR(search_channels(graph).order.sum, 2 * (0.1 + 0.01) + 4 * (1048576 / 125e6), 1e-9);
  // A slow uplink makes every link of its site as slow.
  graph.sites[2].uplink.bytes_per_second = 1e6;
  EXPECT_NEAR(site_costs(graph)[2][1], 0.1 + 1.048576, 1e-9);
  EXPECT_NEAR(site_costs(graph)[1][2], 0.1 + 1048576 / 125e6, 1e-9);
}

TEST(GraphSearch, EqualHostsHaveEqualChannels) {
  const TopologyGraph one = graph_of(testing::h100_host_xml());
  auto many = join_graphs({{one, "", 200}});
  ASSERT_TRUE(many.ok());
  const GraphChannels found = search_channels(many.value());
  EXPECT_EQ(found.like[199], 0U);
  EXPECT_EQ(found.hosts[199].rings.channels, found.hosts[0].rings.channels);
  EXPECT_EQ(found.site_ring(0, 3).size(), 1600U);
}

// Files could state such graphs, nonsense included: every host gets rings and trees over all its GPUs.
TEST(GraphSearch, RandomGraphsGetAnAnswer) {
  std::mt19937_64 random(testing::chosen_seed());
  for (int i = 0; i < 40; ++i) {
    TopologyGraph graph = testing::RandomTopology(random).make();
    if (i % 2 == 0) assume_missing(graph);
    SearchLimits limits;
    limits.steps = 20'000;
    const GraphChannels found = search_channels(graph, limits);
    ASSERT_EQ(found.hosts.size(), graph.hosts.size());
    for (std::size_t host = 0; host < graph.hosts.size(); ++host) {
      const std::size_t members = std::max<std::size_t>(1, gpus_of(graph.hosts[host]).size());
      ASSERT_FALSE(found.hosts[host].rings.channels.empty());
      for (const RingOrder& ring : found.hosts[host].rings.channels)
        EXPECT_EQ(std::set<int>(ring.begin(), ring.end()).size(), members);
      for (const TreeParents& parents : found.hosts[host].trees.channels) EXPECT_EQ(parents.size(), members);
      EXPECT_LE(found.hosts[host].rings.steps, limits.steps);
    }
    std::size_t hosts = 0;
    for (const SiteChannels& site : found.sites) hosts += site.hosts.size();
    EXPECT_EQ(hosts, graph.hosts.size());
    EXPECT_EQ(found.order.sites.size(), graph.sites.size());
  }
}

}  // namespace
}  // namespace seto
