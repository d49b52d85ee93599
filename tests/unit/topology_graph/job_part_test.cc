#include "src/topology/graph/job_part.h"

#include <gtest/gtest.h>

#include "src/topology/graph/join_graphs.h"

namespace seto {
namespace {

// Ranks 0 and 1 on one host, 2 on a second one of the same site, 3 on another site.
const std::vector<Home> kHomes = {{0, 0}, {0, 0}, {1, 0}, {2, 1}};

Sites two_sites() {
  Sites sites;
  sites.of_rank = {0, 0, 0, 1};
  sites.links = SiteLinks(2);
  LinkFacts link{.medium = LinkMedium::wide_area};
  link.round_trip_s = 0.06;
  link.source = FactSource::measured;
  EXPECT_EQ(sites.links.add({0, 0, 1, link}), "");
  return sites;
}

TopologyHost host(const char* name) {
  TopologyHost made;
  made.name = name;
  made.nodes.resize(1);
  return made;
}

TEST(JobPart, TheFirstRankOfEachHostTells) {
  const Tiers tiers = Tiers::of(kHomes);
  EXPECT_TRUE(tells_topology(tiers, 0));
  EXPECT_FALSE(tells_topology(tiers, 1));
  EXPECT_TRUE(tells_topology(tiers, 2));
  EXPECT_TRUE(tells_topology(tiers, 3));
  const Tiers apart = Tiers::of({{0, 0}, {1, 0}});
  EXPECT_TRUE(tells_topology(apart, 1)) << "there is no tier of nodes";
  EXPECT_TRUE(tells_topology(Tiers::flat(1), 0));
}

TEST(JobPart, PartsOfAllHostsMakeTheGraphOfTheJob) {
  const Sites sites = two_sites();
  auto joined = join_graphs({{part_of_job(host("a"), sites, 0), "", 1},
                             {part_of_job(host("b"), sites, 2), "", 1},
                             {part_of_job(host("a"), sites, 3), "", 1}});
  ASSERT_TRUE(joined.ok()) << joined.status().text();
  const TopologyGraph& graph = joined.value();
  ASSERT_EQ(graph.sites.size(), 2U);
  ASSERT_EQ(graph.hosts.size(), 3U);
  EXPECT_EQ(graph.hosts[1].site, 0U);
  EXPECT_EQ(graph.hosts[2].site, 1U);
  EXPECT_NE(graph.hosts[2].name, "a") << "two hosts have this name, so one gets a number";
  const LinkFacts& link = graph.between_sites[0][1];
  EXPECT_EQ(link.round_trip_s, 0.06);
  EXPECT_EQ(link.source, FactSource::measured);
  EXPECT_FALSE(link.bytes_per_second) << "no rank has measured the rate";
  EXPECT_FALSE(graph.between_sites[1][0].known());
}

TEST(JobPart, OneSiteHasNoNameAndNoLinks) {
  const TopologyGraph graph = part_of_job(host("a"), Sites(), 0);
  EXPECT_EQ(graph.sites.size(), 1U);
  EXPECT_TRUE(graph.sites[0].name.empty());
  EXPECT_TRUE(graph.between_sites.empty());
}

}  // namespace
}  // namespace seto
