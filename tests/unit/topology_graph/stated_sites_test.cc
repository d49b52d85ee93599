#include "src/topology/graph/stated_sites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace seto {
namespace {

using ::testing::ElementsAre;

constexpr std::uint64_t kDigest = 7;

TopologyHost host(const char* name, std::size_t site) {
  TopologyHost one;
  one.name = name;
  one.site = site;
  return one;
}

TopologyGraph two_sites() {
  TopologyGraph graph;
  graph.sites.resize(2);
  graph.sites[0].name = "tokyo";
  graph.sites[1].name = "osaka";
  graph.hosts = {host("a", 0), host("b.example.org", 0), host("c.one.net", 1), host("c.two.net", 1)};
  return graph;
}

TEST(StatedSites, MatchAHostByItsIdThenItsName) {
  const StatedSites sites(two_sites(), kDigest);
  EXPECT_EQ(sites.host_of("", "a"), 1U);
  EXPECT_EQ(sites.host_of("c.two.net", "a"), 4U) << "an id is more exact than the name of a machine";
  EXPECT_EQ(sites.host_of("x", "a"), 0U) << "machines with ids may have equal names";
  EXPECT_EQ(sites.host_of("", "elsewhere"), 0U);
  EXPECT_EQ(sites.host_of("", ""), 0U);
}

TEST(StatedSites, MatchANameWithADomainAndOneWithout) {
  const StatedSites sites(two_sites(), kDigest);
  EXPECT_EQ(sites.host_of("", "a.example.org"), 1U);
  EXPECT_EQ(sites.host_of("", "b"), 2U);
  EXPECT_EQ(sites.host_of("", "b.example.com"), 0U) << "two domains are two hosts";
  EXPECT_EQ(sites.host_of("", "c"), 0U) << "two hosts of the file may be meant";
}

TEST(StatedSites, GiveTheSiteOfAHost) {
  const StatedSites sites(two_sites(), kDigest);
  EXPECT_EQ(sites.site_of(1), "tokyo");
  EXPECT_EQ(sites.site_of(3), "osaka");
  EXPECT_EQ(sites.site_of(0), "");
  EXPECT_EQ(sites.site_of(5), "") << "a number that another rank made up";
  EXPECT_THAT(sites.hosts_without({1, 3, 99}), ElementsAre("b.example.org", "c.two.net"));
  EXPECT_EQ(StatedSites().digest(), 0U);
  EXPECT_EQ(StatedSites().host_of("a", "a"), 0U);
}

TEST(StatedSites, OneMachineWithoutSitesStatesNone) {
  TopologyGraph graph;
  graph.hosts = {host("a", 0)};
  const StatedSites sites(graph, kDigest);
  EXPECT_EQ(sites.host_of("", "a"), 1U);
  EXPECT_EQ(sites.site_of(1), "");
  EXPECT_EQ(sites.rates_of(""), PortRates());
}

TEST(StatedSites, RatesAreThoseOfUplinkAndDownlink) {
  TopologyGraph graph = two_sites();
  graph.between(0, 1).bytes_per_second = 25e6;
  EXPECT_EQ(StatedSites(graph, kDigest).rates_of("tokyo"), PortRates()) << "the link to one site is not all that it can send";
  EXPECT_EQ(StatedSites(graph, kDigest).rates_of("nagoya"), PortRates());
  graph.sites[0].uplink.bytes_per_second = 125e6;
  EXPECT_EQ(StatedSites(graph, kDigest).rates_of("tokyo"), (PortRates{125e6, 125e6})) << "one direction stands for the other";
  graph.sites[0].downlink.bytes_per_second = 5e6;
  EXPECT_EQ(StatedSites(graph, kDigest).rates_of("tokyo"), (PortRates{125e6, 5e6}));
}

TEST(StatedSites, AbsurdRatesAreBounded) {
  TopologyGraph graph = two_sites();
  graph.sites[0].uplink.bytes_per_second = 1e-300;
  graph.sites[0].downlink.bytes_per_second = 1e30;
  EXPECT_EQ(StatedSites(graph, kDigest).rates_of("tokyo"), (PortRates{1e3, 1e13}));
}

TEST(StatedSites, LinksComeFromTheFile) {
  TopologyGraph graph = two_sites();
  EXPECT_FALSE(StatedSites(graph, kDigest).between("tokyo", "osaka").known());
  graph.between(0, 1) = {.medium = LinkMedium::wide_area, .bytes_per_second = 25e6, .age_s = 9, .source = FactSource::measured};
  const StatedSites sites(graph, kDigest);
  const LinkFacts link = sites.between("tokyo", "osaka");
  EXPECT_EQ(link.bytes_per_second, 25e6);
  EXPECT_EQ(link.source, FactSource::file) << "measured once, but not by this job";
  EXPECT_EQ(link.age_s, std::nullopt);
  EXPECT_FALSE(sites.between("osaka", "tokyo").known());
  EXPECT_FALSE(sites.between("osaka", "nagoya").known());
  EXPECT_FALSE(sites.between("osaka", "osaka").known());
}

TEST(StatedSites, TheDigestTellsContentsApart) {
  EXPECT_EQ(digest_of_content("<system/>"), digest_of_content("<system/>"));
  EXPECT_NE(digest_of_content("<system/>"), digest_of_content("<system/> "));
  EXPECT_NE(digest_of_content(""), 0U) << "an empty file is a file";
}

}  // namespace
}  // namespace seto
