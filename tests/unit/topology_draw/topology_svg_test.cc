#include "src/topology/draw/topology_svg.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "src/topology/graph/assumptions.h"
#include "src/topology/graph/join_graphs.h"
#include "src/topology/xml/topology_file.h"
#include "src/topology/xml/xml_element.h"
#include "tests/support/h100_host.h"
#include "tests/support/random_topology.h"
#include "tests/support/sanitizers.h"
#include "tests/support/seed.h"

namespace seto {
namespace {

struct Rectangle {
  double x, y, width, height;
};

std::vector<Rectangle> boxes_of(const std::string& svg) {
  const auto document = parse_xml(svg);
  EXPECT_TRUE(document.ok()) << document.status().text();
  std::vector<Rectangle> boxes;
  if (!document.ok()) return boxes;
  for (const XmlElement& element : document.value().root.children) {
    const auto number = [&](const char* key) { return std::atof(element.attribute(key)->c_str()); };
    if (element.name == "rect" && element.attribute("x") != nullptr)
      boxes.push_back({number("x"), number("y"), number("width"), number("height")});
  }
  return boxes;
}

// Two boxes are apart, or one holds the other.
bool cross(const Rectangle& a, const Rectangle& b) {
  const bool apart = a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
  const auto holds = [](const Rectangle& outer, const Rectangle& inner) {
    return outer.x <= inner.x && outer.y <= inner.y && inner.x + inner.width <= outer.x + outer.width &&
           inner.y + inner.height <= outer.y + outer.height;
  };
  return !apart && !holds(a, b) && !holds(b, a);
}

TopologyGraph two_sites_of_two_hosts() {
  auto part = read_topology(testing::h100_host_xml());
  auto joined = join_graphs({{part.value(), "tokyo", 2}, {part.value(), "osaka", 2}});
  joined.value().between(0, 1).round_trip_s = 0.06;
  return std::move(joined).value();
}

TEST(TopologySvg, BoxesOfEightGpusTwoHostsTwoSitesDoNotCross) {
  const std::string svg = topology_svg(two_sites_of_two_hosts());
  const std::vector<Rectangle> boxes = boxes_of(svg);
  // A site has 2 hosts; a host is a box, a bar, 2 nodes, 8 GPUs, 8 switches, 8 NICs with a frame around each.
  EXPECT_EQ(boxes.size(), 2U + 4 * (2 + 2 + 24 + 8));
  for (std::size_t i = 0; i < boxes.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(cross(boxes[i], boxes[j])) << i << " " << j;
  EXPECT_THAT(svg, ::testing::HasSubstr("tokyo to osaka: 60.0 ms round trip (assumed)"));
}

TEST(TopologySvg, RandomGraphsGiveWellFormedDrawings) {
  std::mt19937_64 random(testing::chosen_seed());
  for (std::uint64_t round = 0; round < support::repetitions(25, 6); ++round) {
    TopologyGraph graph = testing::RandomTopology(random).make();
    assume_missing(graph);
    ASSERT_FALSE(boxes_of(topology_svg(graph)).empty());
  }
}

TEST(TopologySvg, AssumedDevicesHaveADashedFrame) {
  auto graph =
      read_topology(R"(<system version="1"><cpu numaid="0"><pci busid="0001:00:00.0" class="0x030200"/></cpu></system>)");
  assume_missing(graph.value());
  EXPECT_THAT(topology_svg(graph.value()), ::testing::HasSubstr("stroke-dasharray"));
  EXPECT_THAT(topology_svg(two_sites_of_two_hosts()), ::testing::Not(::testing::HasSubstr("stroke-dasharray")));
}

// Two different rings of eight hops and two different trees of seven for each host, in rows above the GPUs.
TEST(TopologySvg, RingsAndTreesStandOnTop) {
  const std::string svg = topology_svg(two_sites_of_two_hosts());
  const auto count = [&](const std::string& what) {
    std::size_t found = 0;
    for (std::size_t at = svg.find(what); at != std::string::npos; at = svg.find(what, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("fill=\"none\" stroke=\"#1565c0\"/>\n<path"), 4U * 8) << "hops of the first ring";
  EXPECT_EQ(count("fill=\"none\" stroke=\"#c62828\"/>\n<path"), 4U * 7) << "hops of the first tree";
  EXPECT_EQ(count("<circle"), 4U * 4 * 8);
  EXPECT_THAT(svg, ::testing::HasSubstr(">rings 0-1 14-15 of 16, over switches of GPU links: 28.1 GB/s each</text>"));
}

TEST(TopologySvg, LinksOfTheRingOfSitesAreMarked) {
  TopologyGraph graph;
  graph.sites.resize(3);
  graph.hosts.resize(3);
  for (std::size_t i = 0; i < 3; ++i) graph.hosts[i].site = i;
  for (const auto& [from, to] : {std::pair<std::size_t, std::size_t>{0, 2}, {2, 1}, {1, 0}})
    graph.between(from, to).round_trip_s = 0.01;
  for (const auto& [from, to] : {std::pair<std::size_t, std::size_t>{0, 1}, {1, 2}, {2, 0}})
    graph.between(from, to).round_trip_s = 0.1;
  const std::string svg = topology_svg(graph);
  EXPECT_THAT(svg, ::testing::HasSubstr("0 to 2: 10.0 ms round trip (assumed), in the ring of sites<"));
  EXPECT_THAT(svg, ::testing::HasSubstr("0 to 1: 100 ms round trip (assumed)<"));
}

TEST(TopologySvg, ManyHostsAreCounted) {
  auto part = read_topology(testing::h100_host_xml());
  const auto joined = join_graphs({{part.value(), "", 20}});
  EXPECT_THAT(topology_svg(joined.value()), ::testing::HasSubstr("and 12 more hosts"));
}

}  // namespace
}  // namespace seto
