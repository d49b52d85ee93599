#include "src/topology/graph/join_graphs.h"

#include <gtest/gtest.h>

namespace seto {
namespace {

TopologyGraph of_hosts(std::initializer_list<const char*> names) {
  TopologyGraph graph;
  for (const char* const name : names) graph.hosts.emplace_back().name = name;
  return graph;
}

TEST(JoinGraphs, SitesOfEqualNamesAreOneSite) {
  const auto joined = join_graphs({{of_hosts({""}), "tokyo", 2}, {of_hosts({"b"}), "osaka", 1}, {of_hosts({"b"}), "tokyo", 1}});
  ASSERT_TRUE(joined.ok()) << joined.status().text();
  const TopologyGraph& graph = joined.value();
  ASSERT_EQ(graph.sites.size(), 2U);
  EXPECT_EQ(graph.sites[1].name, "osaka");
  ASSERT_EQ(graph.hosts.size(), 4U);
  EXPECT_EQ(graph.hosts[0].name, "1");
  EXPECT_EQ(graph.hosts[1].name, "2");
  EXPECT_EQ(graph.hosts[2].name, "b");
  EXPECT_EQ(graph.hosts[3].name, "b 1");
  EXPECT_EQ(graph.hosts[2].site, 1U);
  EXPECT_EQ(graph.hosts[3].site, 0U);
}

TEST(JoinGraphs, OneHostStaysAsItIs) {
  const auto joined = join_graphs({{of_hosts({""}), "", 1}});
  ASSERT_TRUE(joined.ok());
  EXPECT_EQ(joined.value(), of_hosts({""}));
}

TEST(JoinGraphs, LinksBetweenSitesKeepTheirDirection) {
  TopologyGraph linked = of_hosts({"b"});
  linked.sites.resize(2);
  linked.sites[0].name = "osaka";
  linked.sites[1].name = "tokyo";
  linked.between(0, 1).bytes_per_second = 7;
  const auto joined = join_graphs({{of_hosts({"a"}), "tokyo", 1}, {linked, "", 1}});
  ASSERT_TRUE(joined.ok()) << joined.status().text();
  ASSERT_EQ(joined.value().between_sites.size(), 2U);
  EXPECT_EQ(joined.value().between_sites[1][0].bytes_per_second, 7) << "osaka is the second site now";
  EXPECT_FALSE(joined.value().between_sites[0][1].known());
}

TEST(JoinGraphs, AbsurdNumbersAndContradictionsAreRefused) {
  TopologyGraph two = of_hosts({"a"});
  two.sites.resize(2);
  EXPECT_NE(join_graphs({{two, "tokyo", 1}}).status().text().find("states 2 sites of its own"), std::string_view::npos);
  EXPECT_NE(join_graphs({{of_hosts({"a"}), "", 0}}).status().text().find("copies: 0"), std::string_view::npos);
  EXPECT_NE(join_graphs({{of_hosts({"a"}), "", 4096}, {of_hosts({"b"}), "", 1}}).status().text().find("4097 hosts"),
            std::string_view::npos);
}

}  // namespace
}  // namespace seto
