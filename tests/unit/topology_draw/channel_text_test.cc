#include "src/topology/draw/channel_text.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "src/topology/graph/assumptions.h"
#include "src/topology/graph/join_graphs.h"
#include "src/topology/xml/topology_file.h"
#include "tests/support/h100_host.h"

namespace seto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TopologyGraph two_sites() {
  auto part = read_topology(testing::h100_host_xml());
  auto joined = join_graphs({{part.value(), "tokyo", 2}, {part.value(), "osaka", 1}});
  joined.value().between(0, 1).round_trip_s = 0.06;
  return std::move(joined).value();
}

std::string text_of(const TopologyGraph& graph) { return channels_text(graph, search_channels(graph)); }

std::string json_of(const TopologyGraph& graph) {
  JsonWriter json;
  json.open('{');
  add_channels(json, graph, search_channels(graph));
  json.close('}');
  return std::move(json).text();
}

TEST(ChannelText, SaysEqualHostsOnceWithTheirRingsAndRails) {
  const std::string text = text_of(two_sites());
  EXPECT_THAT(text, StartsWith("rings, trees and rails that a search found:\n  host 1 and 2 like it:\n"
                               "    16 rings over switches of GPU links, 28.1 GB/s each, 450 GB/s in all\n"
                               "      channels 0-1 14-15: GPUs 0 1 2 3 4 5 6 7\n"));
  EXPECT_THAT(text, HasSubstr("    rail 3: mlx5_3, 25.0 GB/s, under PCI switches with GPU 1\n"));
  EXPECT_THAT(text, HasSubstr("  site tokyo: rings pass hosts 1 2, 400 GB/s in all\n"));
  EXPECT_THAT(text, HasSubstr("  ring of sites: tokyo > osaka > tokyo, 1 MiB over its worst link takes 38.4 ms\n"));
  EXPECT_THAT(text, Not(HasSubstr("site osaka"))) << "a single host has no ring of hosts";
}

TEST(ChannelText, AHostWithoutGpusHasRailsOnly) {
  TopologyGraph graph;
  graph.hosts.resize(1);
  graph.hosts[0].nodes.resize(1);
  EXPECT_THAT(text_of(graph), HasSubstr("  host without a name:\n    no port that channels could use\n"));
  graph.hosts[0].nodes[0].ports.emplace_back().name = "eth0";
  EXPECT_THAT(text_of(graph), AllOf(HasSubstr("    rail 0: eth0\n"), Not(HasSubstr("GPU")), Not(HasSubstr("ring of sites"))));
}

TEST(ChannelText, JsonHasTheOrdersAndTheRails) {
  const std::string json = json_of(two_sites());
  EXPECT_THAT(json, HasSubstr(R"({"host":"1","rings":{"hops":"switches of GPU links","channel_bytes_per_second":2.8125e+10,)"
                              R"("channels":[[0,1,2,3,4,5,6,7],)"));
  EXPECT_THAT(json, AllOf(HasSubstr(R"({"port":"mlx5_15","gpu":7}]})"), HasSubstr(R"({"host":"2","like":"1"})"),
                          HasSubstr(R"("ring_of_sites":[0,1])"), HasSubstr(R"("fallback":0)")));
}

TEST(ChannelText, MembersAreNamedByTheNumbersOfTheirGpusIfThoseDiffer) {
  TopologyHost host;
  host.nodes.resize(1);
  for (const std::uint8_t bus : {std::uint8_t{1}, std::uint8_t{2}}) {
    PciDevice device;
    device.address.bus = bus;
    device.gpus.emplace_back().dev = 5 - bus;
    host.nodes[0].devices.push_back(device);
  }
  EXPECT_EQ(member_names(host), (std::vector<std::string>{"4", "3"}));
  host.nodes[0].devices[1].gpus[0].dev = 4;
  EXPECT_EQ(member_names(host), (std::vector<std::string>{"0", "1"}));
}

TEST(ChannelText, NumbersAndTrees) {
  EXPECT_EQ(numbers_text({0, 1, 2, 5, 7, 8}), "0-2 5 7-8");
  EXPECT_EQ(numbers_text({3}), "3");
  EXPECT_EQ(tree_text({-1, 0, 0, 1}, {"a", "b", "c", "d"}), "a > b c; b > d");
  EXPECT_EQ(tree_text({-1}, {"a"}), "");
}

TEST(ChannelText, RingsOfOneWayAreOneWhereverTheyBegin) {
  FoundChannels rings;
  rings.channels = {{0, 1, 2}, {1, 2, 0}, {2, 1, 0}};
  const auto ways = different_rings(rings);
  ASSERT_EQ(ways.size(), 2U);
  EXPECT_EQ(ways[0].channels, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(ways[1].first, 2U);
}

TEST(ChannelText, AFallbackIsSaid) {
  const TopologyGraph graph = two_sites();
  SearchLimits limits;
  limits.steps = 2;
  EXPECT_THAT(channels_text(graph, search_channels(graph, limits)), HasSubstr("(search found no better one within its budget)"));
}

}  // namespace
}  // namespace seto
