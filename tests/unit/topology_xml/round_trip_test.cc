#include <gtest/gtest.h>

#include <random>
#include <string>

#include "src/topology/xml/topology_file.h"
#include "tests/support/random_topology.h"
#include "tests/support/seed.h"

namespace seto {
namespace {

TEST(TopologyRoundTrip, WhatIsWrittenIsReadBackAsTheSameGraph) {
  const std::uint64_t seed = testing::chosen_seed();
  std::mt19937_64 random(seed);
  std::size_t devices = 0;
  for (int round = 0; round < 500; ++round) {
    const TopologyGraph graph = testing::RandomTopology(random).make();
    const std::string text = write_nccl(graph);
    const Result<TopologyGraph> again = read_topology(text);
    ASSERT_TRUE(again.ok()) << "round " << round << ": " << again.status().text() << "\n" << text;
    ASSERT_TRUE(again.value() == graph) << "round " << round << "\n" << text << "\nread back:\n" << write_nccl(again.value());
    for (const NumaNode& node : graph.hosts[0].nodes) devices += node.devices.size();
  }
  EXPECT_GT(devices, 500U);
}

// The facts that a file leaves out and the ranks of a job tell each other.
void add_state(TopologyGraph& graph, std::mt19937_64& random) {
  const auto any_source = [&] { return static_cast<FactSource>(random() % kFactSources); };
  const auto change = [&](auto& self, std::vector<PciDevice>& devices) -> void {
    for (PciDevice& device : devices) {
      device.source = any_source();
      device.link_source = any_source();
      for (Gpu& gpu : device.gpus) {
        gpu.source = any_source();
        gpu.uuid = "GPU-1234";
        gpu.product = "a & b";
      }
      for (NetPort& port : device.ports) {
        port.source = any_source();
        port.speed_source = any_source();
        port.up = random() % 2 == 0;
        port.mtu = static_cast<int>(random() % 9000);
        port.default_route = random() % 2 == 0;
        port.addresses = {"10.0.0.1", "fe80::1"};
        if (random() % 2 == 0) port.rdma = {"Ethernet", "eth0", {}, "10.0.0.1", "RoCE v2, \"best\" <of> 4"};
        if (random() % 2 == 0) port.rdma.gid = static_cast<int>(random() % 300);
      }
      self(self, device.children);
    }
  };
  for (TopologyHost& host : graph.hosts) {
    if (!host.name.empty()) host.notes = {"hwloc: not installed", "a \"note\" <of> this host"};
    for (NumaNode& node : host.nodes) {
      node.source = any_source();
      change(change, node.devices);
    }
  }
}

TEST(TopologyRoundTrip, RanksOfAJobTellEachOtherEverything) {
  std::mt19937_64 random(testing::chosen_seed());
  for (int round = 0; round < 50; ++round) {
    TopologyGraph graph = testing::RandomTopology(random).make();
    add_state(graph, random);
    const std::string text = write_nccl(graph, FileContent::everything);
    const Result<TopologyGraph> again = read_topology(text);
    ASSERT_TRUE(again.ok()) << again.status().text() << "\n" << text;
    ASSERT_TRUE(again.value() == graph) << text << "\nread back:\n" << write_nccl(again.value(), FileContent::everything);
    ASSERT_EQ(write_nccl(graph).find(" seto_"), std::string::npos) << "a file for NCCL has no attributes of ours";
  }
}

TEST(TopologyRoundTrip, AReasonThatIsCutEndsInDots) {
  TopologyGraph graph;
  graph.hosts.resize(1);
  graph.hosts[0].name = "a";
  NumaNode& node = graph.hosts[0].nodes.emplace_back();
  node.number = 0;
  NetPort& port = node.ports.emplace_back();
  port.name = "mlx5_0";
  for (const std::size_t letters : {199U, 200U, 201U, 1'000U}) {
    port.rdma = {"Ethernet", "", {}, "", std::string(letters, 'x')};
    const auto again = read_topology(write_nccl(graph, FileContent::everything));
    ASSERT_TRUE(again.ok()) << again.status().text();
    EXPECT_EQ(again.value().hosts[0].nodes[0].ports[0].rdma.why, letters <= 200 ? port.rdma.why : std::string(197, 'x') + "...");
  }
}

TEST(TopologyRoundTrip, NonsenseInOurOwnAttributesIsRefused) {
  const auto refused = [](const std::string& inside) {
    const auto graph = read_topology("<system version=\"1\"><seto_host hash=\"0x1\" name=\"a\"/>" + inside + "</system>");
    return graph.ok() ? std::string("it was read") : std::string(graph.status().text());
  };
  EXPECT_EQ(refused(R"(<cpu numaid="0" seto_source="rumour"/>)"), "line 1: <cpu>: seto_source: 'rumour' is not a source");
  EXPECT_EQ(refused(R"(<seto_note hash="0x2" text="x"/>)"), "line 1: <seto_note>: hash: no host has it");
  EXPECT_NE(refused(R"(<cpu numaid="0"><nic><net name="e" seto_mtu="-5"/></nic></cpu>)").find("seto_mtu: '-5'"),
            std::string::npos);
  EXPECT_EQ(refused(R"(<seto_note hash="0x1" text="x"/>)"), "it was read");
}

// NCCL's reader takes no prolog, no tab, no newline inside a tag, at most 16 attributes and values under 255 characters.
TEST(TopologyRoundTrip, WhatIsWrittenObeysTheRulesOfNccl) {
  const std::uint64_t seed = testing::chosen_seed();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 100; ++round) {
    const std::string text = write_nccl(testing::RandomTopology(random).make());
    ASSERT_TRUE(text.starts_with("<system version=\"")) << text;
    ASSERT_EQ(text.find('\t'), std::string::npos);
    for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
      end = text.find('\n', begin);
      const std::string line = text.substr(begin, end - begin);
      ASSERT_EQ(line.back(), '>') << line;
      ASSERT_LE(std::count(line.begin(), line.end(), '='), 16) << line;
      ASSERT_LT(line.size(), 400U) << line;
    }
  }
}

TEST(TopologyRoundTrip, HostsKeepTheirHash) {
  const auto graph =
      read_topology(R"(<system version="1"><cpu numaid="0" host_hash="0x1f"/><cpu numaid="0" host_hash="0x20"/></system>)");
  ASSERT_TRUE(graph.ok()) << graph.status().text();
  ASSERT_EQ(graph.value().hosts.size(), 2U);
  EXPECT_EQ(graph.value().hosts[1].name, "0x20");
  EXPECT_NE(write_nccl(graph.value()).find(R"(<cpu numaid="0" host_hash="0x20"/>)"), std::string::npos);
}

TEST(TopologyRoundTrip, MeasuredLinksBetweenSitesKeepTheirSourceAndAge) {
  TopologyGraph graph;
  graph.sites.resize(2);
  graph.sites[0].name = "tokyo";
  graph.sites[1].name = "osaka";
  graph.hosts.resize(2);
  graph.hosts[0].name = "a";
  graph.hosts[1].name = "b";
  graph.hosts[1].site = 1;
  LinkFacts& link = graph.between(0, 1);
  link.bytes_per_second = 1.25e8;
  link.round_trip_s = 0.0603;
  link.age_s = 12.5;
  link.source = FactSource::measured;
  const auto again = read_topology(write_nccl(graph));
  ASSERT_TRUE(again.ok()) << again.status().text();
  EXPECT_EQ(again.value(), graph);
  EXPECT_FALSE(again.value().between_sites[1][0].known()) << "the matrix is directed";
}

}  // namespace
}  // namespace seto
