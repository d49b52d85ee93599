// The ways between two GPUs by their topology, and the constants of choice that follow.

#include "src/core/choice/gpu_paths.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "src/core/device_memory/device_costs.h"
#include "src/topology/xml/topology_file.h"
#include "tests/support/h100_host.h"

namespace seto {
namespace {

constexpr double kH100 = 18 * 20.6e9;  // payload of its links, bytes per second

std::vector<GpuPaths> paths_in(const std::string& xml) {
  const TopologyGraph graph = read_topology(xml).value();
  std::vector<GpuPaths> paths;
  for (const GpuPlace& gpu : gpus_of(graph.hosts.front())) paths.push_back(paths_of(gpu));
  return paths;
}

std::string pci(int bus, const std::string& code, const std::string& speed, int lanes, const std::string& inside) {
  return "<pci busid=\"0000:" + std::to_string(bus) + ":00.0\" class=\"" + code + "\" link_speed=\"" + speed +
         "\" link_width=\"" + std::to_string(lanes) + "\">" + inside + "</pci>";
}
std::string gpu(int bus, const std::string& inside = {}, int sm = 80, int lanes = 16) {
  return pci(bus, "0x030200", "16.0 GT/s PCIe", lanes, "<gpu dev=\"0\" sm=\"" + std::to_string(sm) + "\">" + inside + "</gpu>");
}
std::string host(const std::string& devices) {
  return "<system version=\"1\"><cpu numaid=\"0\" affinity=\"f\" arch=\"x86_64\">" + devices + "</cpu></system>";
}
std::string links_to(int bus, int count) {
  return "<nvlink target=\"0000:" + std::to_string(bus) + ":00.0\" count=\"" + std::to_string(count) + "\" tclass=\"0x030200\"/>";
}

// The ranks of a node, each on one of the GPUs.
std::vector<RankStatement> ranks_on(const std::vector<GpuPaths>& gpus) {
  std::vector<RankStatement> statements(gpus.size());
  for (std::size_t rank = 0; rank < gpus.size(); ++rank) {
    statements[rank].paths = gpus[rank];
    statements[rank].gpu.bytes[0] = static_cast<char>(rank);
  }
  return statements;
}

GpuPairCost slowest_of(const std::vector<RankStatement>& statements, const RelayedPairs& relayed = RelayedPairs()) {
  return slowest_pair(Tiers::flat(static_cast<int>(statements.size())), statements, relayed);
}

TEST(GpuPaths, AnH100WithSwitchesHasTheRateOfAllItsLinks) {
  const std::vector<GpuPaths> gpus = paths_in(testing::h100_host_xml());
  ASSERT_EQ(gpus.size(), 8U);
  for (const GpuPaths& other : {gpus[1], gpus[7]}) {
    const GpuPairCost cost = cost_between(gpus[0], other, true).value();
    EXPECT_EQ(cost.medium, GpuMedium::links);
    EXPECT_EQ(cost.links, 18);
    EXPECT_DOUBLE_EQ(cost.bytes_per_second, kH100);
    EXPECT_DOUBLE_EQ(cost.hop_seconds, 3 * 0.6e-6);
  }
  const GpuPairCost without = cost_between(gpus[0], gpus[7], false).value();
  EXPECT_EQ(without.medium, GpuMedium::pci) << "the driver lets no GPU reach the other";
  EXPECT_DOUBLE_EQ(without.bytes_per_second, 48e9);  // 16 lanes of generation 5
}

TEST(GpuPaths, DirectLinksCountForTheirPairOnly) {
  const std::vector<GpuPaths> gpus = paths_in(
      host(gpu(10, links_to(11, 2), 70) + gpu(11, links_to(10, 2) + links_to(12, 1), 80) + gpu(12, links_to(11, 1), 86)));
  EXPECT_DOUBLE_EQ(cost_between(gpus[0], gpus[1], true)->bytes_per_second, 2 * 20e9);
  EXPECT_DOUBLE_EQ(cost_between(gpus[1], gpus[2], true)->bytes_per_second, 12e9) << "the slower end decides";
  EXPECT_EQ(cost_between(gpus[0], gpus[2], true)->medium, GpuMedium::pci);
  EXPECT_DOUBLE_EQ(slowest_of(ranks_on(gpus)).bytes_per_second, 12e9);
  EXPECT_DOUBLE_EQ(slowest_of(ranks_on(gpus)).hop_seconds, 3e-6) << "one pair has no links";
}

TEST(GpuPaths, TheSlowestPciLinkBetweenThemDecides) {
  const std::string one = pci(1, "0x060400", "16.0 GT/s PCIe", 8, gpu(10) + gpu(11, "", 80, 4));
  const std::string other = pci(2, "0x060400", "8.0 GT/s PCIe", 16, gpu(12));
  const std::vector<GpuPaths> gpus = paths_in(host(one + other + gpu(13) + gpu(14)));
  EXPECT_DOUBLE_EQ(cost_between(gpus[3], gpus[4], true)->bytes_per_second, 24e9);
  EXPECT_DOUBLE_EQ(cost_between(gpus[0], gpus[3], true)->bytes_per_second, 12e9) << "above the switch are 8 lanes";
  EXPECT_DOUBLE_EQ(cost_between(gpus[0], gpus[1], true)->bytes_per_second, 6e9) << "below one switch, 4 lanes";
  EXPECT_DOUBLE_EQ(cost_between(gpus[2], gpus[4], true)->bytes_per_second, 12e9) << "generation 3";
  EXPECT_DOUBLE_EQ(cost_between(gpus[0], gpus[3], true)->hop_seconds, 3e-6);
}

TEST(GpuPaths, NothingKnownIsTheConstants) {
  const GpuPaths nothing;
  EXPECT_FALSE(cost_between(nothing, nothing, true).has_value());
  const std::vector<GpuPaths> h100 = paths_in(testing::h100_host_xml());
  EXPECT_FALSE(cost_between(nothing, GpuPaths(), true).has_value());
  EXPECT_EQ(cost_between(nothing, h100[0], true)->medium, GpuMedium::pci) << "one end is known";
  const GpuPairCost unknown = slowest_of(ranks_on({nothing, nothing}));
  EXPECT_EQ(unknown.medium, GpuMedium::unknown);
  EXPECT_DOUBLE_EQ(unknown.bytes_per_second, 24e9);
  EXPECT_DOUBLE_EQ(unknown.hop_seconds, 2e-6);
}

TEST(DeviceCosts, FollowFromTheSlowestPairOfANode) {
  std::vector<RankStatement> statements = ranks_on(paths_in(testing::h100_host_xml()));
  const CostModel host;
  const CostModel costs = assumed_device_costs(host, slowest_of(statements));
  EXPECT_DOUBLE_EQ(costs.node.bytes_per_second, kH100);
  EXPECT_DOUBLE_EQ(costs.node.latency_seconds, 1.8e-6);
  EXPECT_EQ(costs.world, host.world);

  RelayedPairs relayed(statements.size());
  relayed.add(2, 5);
  EXPECT_DOUBLE_EQ(slowest_of(statements, relayed).bytes_per_second, 48e9);

  statements[3].gpu = statements[2].gpu;  // two ranks on one GPU, whose memory is faster than the links of the others
  EXPECT_DOUBLE_EQ(slowest_of(statements).bytes_per_second, kH100);
  std::vector<RankStatement> alone(2);  // the same GPU
  EXPECT_EQ(slowest_of(alone).medium, GpuMedium::memory);
  EXPECT_DOUBLE_EQ(slowest_of(alone).bytes_per_second, 500e9);
}

// A pair on two hosts may have equal PCI addresses, and uses none of them.
TEST(DeviceCosts, PairsOfTwoHostsDoNotCount) {
  const std::vector<GpuPaths> h100 = paths_in(testing::h100_host_xml());
  const std::vector<RankStatement> statements = ranks_on({h100[0], h100[1], GpuPaths(), GpuPaths()});
  const Tiers tiers = Tiers::of({{0, 0}, {0, 0}, {1, 0}, {2, 0}});
  EXPECT_DOUBLE_EQ(slowest_pair(tiers, statements, RelayedPairs()).bytes_per_second, kH100);
  const Tiers apart = Tiers::of({{0, 0}, {1, 0}, {2, 0}, {3, 0}});
  EXPECT_EQ(slowest_pair(apart, statements, RelayedPairs()).medium, GpuMedium::unknown);
}

// The statements of ranks are copied as bytes.
TEST(GpuPaths, SurviveAMessage) {
  const std::vector<GpuPaths> h100 = paths_in(testing::h100_host_xml());
  GpuPaths copy;
  std::memcpy(static_cast<void*>(&copy), &h100[3], sizeof copy);
  EXPECT_DOUBLE_EQ(cost_between(copy, h100[0], true)->bytes_per_second, kH100);
}

}  // namespace
}  // namespace seto
