#include "src/topology/graph/graph_views.h"

#include <gtest/gtest.h>

namespace seto {
namespace {

PciDevice gpu_device(std::uint8_t bus, int rank) {
  PciDevice device;
  device.address.bus = bus;
  device.gpus.emplace_back().rank = rank;
  return device;
}

TopologyHost host_of_gpus(const char* name, std::size_t site, std::initializer_list<int> ranks) {
  TopologyHost host;
  host.name = name;
  host.site = site;
  host.nodes.resize(1);
  std::uint8_t bus = 1;
  for (const int rank : ranks) host.nodes[0].devices.push_back(gpu_device(bus++, rank));
  return host;
}

TEST(TopologyViews, TiersFollowHostsAndSites) {
  TopologyGraph graph;
  graph.sites.resize(2);
  graph.hosts = {host_of_gpus("a", 0, {0, 1}), host_of_gpus("b", 0, {2, 3}), host_of_gpus("c", 1, {4, 5}),
                 host_of_gpus("d", 1, {6, 7})};
  const Tiers tiers = tiers_of(graph);
  EXPECT_EQ(tiers.ranks(), 8);
  ASSERT_EQ(tiers.count(), 3);
  EXPECT_EQ(tiers.kind(2), TierKind::world);
  EXPECT_EQ(tiers.ends(2), std::pair(0, 4));
}

TEST(TopologyViews, RanksOfGpusDecideTheOrder) {
  TopologyGraph graph;
  graph.hosts = {host_of_gpus("a", 0, {3, 1}), host_of_gpus("b", 0, {0, 2})};
  EXPECT_EQ(homes_of(graph), (std::vector<Home>{{1, 0}, {0, 0}, {1, 0}, {0, 0}}));
}

TEST(TopologyViews, GpusWithoutRanksAreNumberedInTheOrderOfTheGraph) {
  TopologyGraph graph;
  graph.hosts = {host_of_gpus("a", 0, {1, -1}), host_of_gpus("b", 0, {0, 0}), host_of_gpus("no GPU", 0, {})};
  EXPECT_EQ(homes_of(graph), (std::vector<Home>{{0, 0}, {0, 0}, {1, 0}, {1, 0}, {2, 0}}));
  EXPECT_EQ(tiers_of(TopologyGraph()).ranks(), 1);
}

TEST(TopologyViews, DistanceFollowsTheTree) {
  TopologyHost host;
  host.nodes.resize(2);
  PciDevice root;
  root.children = {gpu_device(1, 0), gpu_device(2, 1)};
  PciDevice below;
  below.children = {gpu_device(3, 2)};
  root.children.push_back(below);
  host.nodes[0].devices = {root, gpu_device(4, 3)};
  host.nodes[1].devices = {gpu_device(5, 4)};
  const std::vector<GpuPlace> gpus = gpus_of(host);
  ASSERT_EQ(gpus.size(), 5U);
  EXPECT_EQ(distance(gpus[0], gpus[0]), PciDistance::same_device);
  EXPECT_EQ(distance(gpus[0], gpus[1]), PciDistance::one_switch);
  EXPECT_EQ(distance(gpus[0], gpus[2]), PciDistance::several_switches);
  EXPECT_EQ(distance(gpus[0], gpus[3]), PciDistance::same_node);
  EXPECT_EQ(distance(gpus[0], gpus[4]), PciDistance::other_node);
}

TEST(TopologyViews, DirectLinksCountAndOthersDoNot) {
  TopologyHost host = host_of_gpus("a", 0, {0, 1, 2});
  for (PciDevice& device : host.nodes[0].devices) device.gpus[0].sm = 80;
  host.nodes[0].devices[0].gpus[0].links = {{PciAddress{0, 2, 0, 0}, 0x030200, 4}};
  const std::vector<GpuPlace> gpus = gpus_of(host);
  ASSERT_TRUE(gpu_link(gpus[0], gpus[1]));
  EXPECT_EQ(gpu_link(gpus[0], gpus[1])->medium, LinkMedium::nvlink);
  EXPECT_DOUBLE_EQ(gpu_link(gpus[0], gpus[1])->bytes_per_second.value_or(0), 4 * 25e9);
  EXPECT_FALSE(gpu_link(gpus[0], gpus[2]));
  EXPECT_FALSE(all_joined_by_switches(host));
}

TEST(TopologyViews, PciRatesAreThoseOfTheStandard) {
  EXPECT_NEAR(pci_bytes_per_second(3, 16).value_or(0), 15.754e9, 1e6);
  EXPECT_NEAR(pci_bytes_per_second(5, 16).value_or(0), 63.015e9, 1e6);
  EXPECT_NEAR(pci_bytes_per_second(1, 1).value_or(0), 0.25e9, 1);
  EXPECT_EQ(pci_generation_of("16.0 GT/s PCIe"), 4);
  EXPECT_EQ(pci_generation_of("8 GT/s"), 3);
  EXPECT_EQ(pci_generation_of("Unknown"), 0);
  EXPECT_FALSE(pci_bytes_per_second(0, 16));
  EXPECT_FALSE(pci_bytes_per_second(7, 16));
  EXPECT_FALSE(pci_bytes_per_second(4, 0));
}

TEST(TopologyViews, ASiteSendsAtTheLeastRateOnTheWay) {
  TopologyGraph graph;
  graph.sites.resize(2);
  graph.sites[1].name = "osaka";
  EXPECT_EQ(rate_between(graph, 0, 1).bytes_per_second, 0);
  EXPECT_TRUE(graph.between_sites.empty()) << "a question changes nothing";
  graph.between(0, 1).bytes_per_second = 1e9;
  graph.between(0, 1).source = FactSource::measured;
  EXPECT_EQ(rate_between(graph, 0, 1).source, FactSource::measured);
  graph.sites[1].downlink.bytes_per_second = 1e8;
  graph.sites[1].downlink.source = FactSource::file;
  EXPECT_EQ(rate_between(graph, 0, 1).bytes_per_second, 1e8);
  EXPECT_EQ(rate_between(graph, 0, 1).source, FactSource::file);
  EXPECT_EQ(rate_between(graph, 1, 0).bytes_per_second, 0) << "the other direction has links of its own";
  EXPECT_EQ(site_name(graph, 0) + site_name(graph, 1), "0osaka");
}

TEST(CoreSet, ReadsAndWritesMasks) {
  const auto cores = CoreSet::parse("00000000,000000ff,0000000f");
  ASSERT_TRUE(cores);
  EXPECT_EQ(cores->count(), 12U);
  EXPECT_EQ(cores->text(), "000000ff,0000000f");
  EXPECT_EQ(cores->ranges(), "0-3,32-39");
  EXPECT_EQ(CoreSet::parse("0x00000001,,0x00000001")->ranges(), "0,64");
  EXPECT_EQ(cores->both(*CoreSet::parse("3")).ranges(), "0-1");
  EXPECT_TRUE(CoreSet::parse("")->empty());
  EXPECT_TRUE(CoreSet::parse("0,0")->empty());
  EXPECT_FALSE(CoreSet::parse("123456789"));
  EXPECT_FALSE(CoreSet::parse("0x"));
  EXPECT_FALSE(CoreSet::parse("f f"));
}

TEST(PciAddress, ReadsAndWrites) {
  EXPECT_EQ(text_of(*parse_pci_address("10000:E1:1F.7")), "10000:e1:1f.7");
  for (const char* const bad :
       {"", "0000:00:00", "0000:00:20.0", "0000:00:00.8", "123456789:00:00.0", "0000:00:00.0 ", "x:00:00.0"})
    EXPECT_FALSE(parse_pci_address(bad)) << bad;
}

}  // namespace
}  // namespace seto
