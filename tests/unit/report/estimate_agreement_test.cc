// The estimate that seto explain shows, against the time that seto plan simulate predicts, on the same topology.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "src/core/call/ids.h"
#include "src/report/explain.h"
#include "src/report/graph_facts.h"
#include "src/report/simulation.h"
#include "src/topology/graph/join_graphs.h"
#include "src/topology/xml/topology_file.h"
#include "tests/support/h100_host.h"

namespace seto {
namespace {

using ::testing::HasSubstr;

constexpr double kWithin = 0.25;

struct Row {
  std::string name;
  Collective collective = Collective::all_reduce;
  std::uint64_t bytes = 64 << 20;  // of the size column
  std::string_view pin = {};
  std::string_view codec = {};  // as SETO_CODEC
};

// Sites of this number of hosts, 60 ms apart; hosts have 10 Gbit/s.
TopologyGraph sites_of(std::size_t sites, std::size_t hosts, double uplink_bytes_per_second) {
  TopologyGraph graph;
  graph.sites.resize(sites);
  for (std::size_t site = 0; site < sites; ++site) {
    graph.sites[site].name = std::to_string(site);
    graph.sites[site].fabric.bytes_per_second = 1.25e9;
    graph.sites[site].fabric.round_trip_s = 20e-6;
    if (uplink_bytes_per_second > 0) {
      graph.sites[site].uplink.bytes_per_second = uplink_bytes_per_second;
      graph.sites[site].downlink.bytes_per_second = uplink_bytes_per_second;
    }
    for (std::size_t host = 0; host < hosts; ++host) {
      TopologyHost& made = graph.hosts.emplace_back();
      made.name = std::to_string(site) + "." + std::to_string(host);
      made.site = site;
    }
    for (std::size_t other = 0; other < sites; ++other)
      if (other != site) graph.between(site, other).round_trip_s = 60e-3;
  }
  return graph;
}

struct Both {
  double estimated = 0;
  double simulated = 0;
  std::string chosen;
};

Both both_of(const Row& row, const GraphFacts& facts) {
  Question question;
  question.collective = row.collective;
  question.ranks = facts.tiers.ranks();
  question.crowding = facts.crowding;
  question.pin = row.pin;
  question = of_size(question, row.bytes, row.codec, facts.tiers, facts.costs).value();
  const Choice choice = choose(question, facts.tiers, facts.costs).value();
  SimulationModel model = model_of(facts);
  const Result<Simulation> simulation = simulate_call(question, model);
  EXPECT_TRUE(simulation.ok()) << simulation.status().text();
  Both both;
  for (const Candidate& candidate : choice.candidates) {
    if (candidate.algorithm != choice.algorithm || candidate.coded_tiers != choice.coded_tiers) continue;
    both.estimated = candidate.estimate.seconds;
    both.chosen = candidate.name(question);
  }
  EXPECT_EQ(simulation.value().choice.algorithm, choice.algorithm);
  EXPECT_EQ(simulation.value().choice.coded_tiers, choice.coded_tiers);
  both.simulated = simulation.value().seconds;
  return both;
}

void expect_agreement(const GraphFacts& facts, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const Both both = both_of(row, facts);
    std::printf("%-40s %-28s %9.3f ms estimated, %9.3f ms simulated, %.2f\n", row.name.c_str(), both.chosen.c_str(),
                both.estimated * 1e3, both.simulated * 1e3, both.estimated / both.simulated);
    EXPECT_NEAR(both.estimated / both.simulated, 1, kWithin) << row.name << ", " << both.chosen;
  }
}

TEST(EstimateAgreement, OfTwoSitesOfTwoHosts) {
  const GraphFacts facts = facts_of_graph(sites_of(2, 2, 125e6), 0, {}).value();
  ASSERT_EQ(facts.tiers.ranks(), 4);
  expect_agreement(facts, {{.name = "all_reduce 64M"},
                           {.name = "all_reduce 64M, exact", .codec = "none"},
                           {.name = "all_reduce 1M", .bytes = 1 << 20},
                           {.name = "all_reduce 4K", .bytes = 4 << 10},
                           {.name = "all_reduce 64M, ring", .pin = "ring", .codec = "none"},
                           {.name = "all_reduce 64M, two_shot", .pin = "two_shot", .codec = "none"},
                           {.name = "all_reduce 64M, double_tree", .pin = "double_tree", .codec = "none"},
                           {.name = "all_reduce 64M, halving", .pin = "halving_doubling", .codec = "none"},
                           {.name = "all_reduce 64M, recursive", .pin = "recursive_doubling", .codec = "none"},
                           {.name = "all_gather 64M", .collective = Collective::all_gather},
                           {.name = "reduce_scatter 64M", .collective = Collective::reduce_scatter},
                           {.name = "broadcast 64M", .collective = Collective::broadcast},
                           {.name = "reduce 64M", .collective = Collective::reduce},
                           {.name = "all_to_all 64M", .collective = Collective::all_to_all},
                           {.name = "gather 64M", .collective = Collective::gather},
                           {.name = "scatter 64M", .collective = Collective::scatter}});
}

TEST(EstimateAgreement, OfSeveralRanksOnAHost) {
  const GraphFacts facts = facts_of_graph(sites_of(2, 2, 125e6), 16, {}).value();
  ASSERT_EQ(facts.tiers.ranks(), 16);
  expect_agreement(facts, {{.name = "all_reduce 64M"},
                           {.name = "all_reduce 64M, exact", .codec = "none"},
                           {.name = "all_reduce 64M, ring", .pin = "ring", .codec = "none"},
                           {.name = "all_reduce 64M, two_shot", .pin = "two_shot", .codec = "none"},
                           {.name = "all_gather 64M", .collective = Collective::all_gather},
                           {.name = "reduce_scatter 64M", .collective = Collective::reduce_scatter},
                           {.name = "broadcast 64M", .collective = Collective::broadcast},
                           {.name = "all_to_all 64M", .collective = Collective::all_to_all}});
}

TEST(EstimateAgreement, OfThreeSitesWithUplinksOfDifferentRates) {
  TopologyGraph graph = sites_of(3, 2, 125e6);
  graph.sites[0].uplink.bytes_per_second = graph.sites[0].downlink.bytes_per_second = 62.5e6;
  const GraphFacts facts = facts_of_graph(graph, 6, {}).value();
  EXPECT_EQ(facts.tiers.rates().size(), 3U);
  expect_agreement(facts, {{.name = "all_reduce 64M"},
                           {.name = "all_gather 64M", .collective = Collective::all_gather},
                           {.name = "reduce_scatter 64M", .collective = Collective::reduce_scatter},
                           {.name = "broadcast 64M", .collective = Collective::broadcast}});
}

TEST(EstimateAgreement, OfGpusAtTwoSites) {
  const TopologyGraph host = read_topology(testing::h100_host_xml()).value();
  const TopologyGraph graph = join_graphs({{host, "tokyo", 1}, {host, "osaka", 1}}).value();
  const GraphFacts facts = facts_of_graph(graph, 0, {}).value();
  expect_agreement(facts, {{.name = "all_reduce 64M"}, {.name = "all_reduce 64M, exact", .codec = "none"}});
}

// SETO_SITE_UPLINK_MBIT stands for what the file does not state.
TEST(EstimateAgreement, OfSitesWhoseRatesSettingsState) {
  Config config;
  config.site_uplink_mbit = 400;
  const GraphFacts facts = facts_of_graph(sites_of(2, 2, 0), 0, {}, site_rates_of(config)).value();
  ASSERT_EQ(facts.tiers.rates().size(), 2U);
  EXPECT_EQ(facts.tiers.slowest_rate(), 50e6);
  EXPECT_THAT(facts.assumptions, ::testing::Contains(HasSubstr("SETO_SITE_UPLINK_MBIT")));
  expect_agreement(facts, {{.name = "all_reduce 64M"}});
  const GraphFacts stated = facts_of_graph(sites_of(2, 2, 125e6), 0, {}, site_rates_of(config)).value();
  EXPECT_EQ(stated.tiers.slowest_rate(), 125e6) << "the file comes first";
}

// A socket carries a twenty-fifth of the link, and the number of sockets has a bound, so that they limit the call.
TEST(EstimateAgreement, OfSitesWhereTheFileStatesWhatASocketCarries) {
  TopologyGraph graph = sites_of(2, 1, 125e6);
  graph.between(0, 1).socket_bytes_per_second = graph.between(1, 0).socket_bytes_per_second = 5e6;
  const GraphFacts two = facts_of_graph(graph, 0, {}).value();
  EXPECT_EQ(flow_on(TierKind::world, two.tiers, two.costs).sockets, 16U);
  const Row exact{.name = "all_reduce 64M, exact, 16 sockets of 5 MB/s", .codec = "none"};
  expect_agreement(two, {exact, {.name = "all_reduce 64M, 16 sockets of 5 MB/s"}});
  EXPECT_NEAR(both_of(exact, two).simulated, 64 * 1.048576 / 80, 0.1) << "80 MB/s, not the 125 of the link";
  const GraphFacts eight = facts_of_graph(graph, 8, {}).value();
  EXPECT_EQ(flow_on(TierKind::world, eight.tiers, eight.costs).sockets, 7U) << "25 divided by four ranks of a site";
  expect_agreement(eight, {{.name = "all_reduce 64M, exact, 7 sockets of 5 MB/s", .codec = "none"},
                           {.name = "all_reduce 64M, 7 sockets of 5 MB/s, two_shot", .pin = "two_shot", .codec = "none"},
                           {.name = "all_gather 64M, 7 sockets of 5 MB/s", .collective = Collective::all_gather},
                           {.name = "broadcast 64M, 7 sockets of 5 MB/s", .collective = Collective::broadcast}});
}

// Three to five sites whose pairs have links of their own. One pair, and the one beside it in the other direction, is slow and
// far.
TopologyGraph sites_with_a_slow_pair(std::size_t sites) {
  TopologyGraph graph = sites_of(sites, 2, 0);
  for (std::size_t from = 0; from < sites; ++from)
    for (std::size_t to = 0; to < sites; ++to)
      if (from != to) graph.between(from, to).bytes_per_second = 125e6;
  for (const auto& [from, to] : {std::pair<std::size_t, std::size_t>{0, 1}, {1, 2}}) {
    graph.between(from, to).bytes_per_second = 6.25e6;
    graph.between(from, to).round_trip_s = 240e-3;
  }
  return graph;
}

// The ring of sites goes round the slow links, and the call is faster by what was predicted.
TEST(EstimateAgreement, OfSitesThatARingPassesBesideASlowLink) {
  for (const std::size_t sites : {3U, 4U, 5U}) {
    SCOPED_TRACE(std::to_string(sites) + " sites");
    const GraphFacts facts = facts_of_graph(sites_with_a_slow_pair(sites), static_cast<int>(4 * sites), {}).value();
    const std::vector<int>& order = facts.costs.ring.order;
    ASSERT_EQ(order.size(), sites);
    for (std::size_t i = 0; i < sites; ++i) {
      const std::pair<int, int> link{order[i], order[(i + 1) % sites]};
      EXPECT_TRUE(link != std::pair(0, 1) && link != std::pair(1, 2)) << link.first << " > " << link.second;
    }
    const Both ring = both_of({.name = "64M", .codec = "none"}, facts);
    const Both direct = both_of({.name = "64M", .pin = "hierarchical", .codec = "none"}, facts);
    EXPECT_EQ(ring.chosen, "site_ring");
    EXPECT_NEAR(ring.estimated / ring.simulated, 1, kWithin);
    EXPECT_NEAR(direct.estimated / direct.simulated, 1, kWithin);
    EXPECT_LT(ring.simulated, direct.simulated / 2);
    std::printf("%zu sites: hierarchical %.0f ms, site_ring %.0f ms; estimated %.0f and %.0f\n", sites, direct.simulated * 1e3,
                ring.simulated * 1e3, direct.estimated * 1e3, ring.estimated * 1e3);
    // In the order of the sites the ring would cross both slow links.
    GraphFacts unordered = facts;
    unordered.tiers.take_ring({});
    unordered.costs.ring = {};
    const Both along = both_of({.name = "64M", .pin = "site_ring", .codec = "none"}, unordered);
    EXPECT_LT(ring.simulated, along.simulated / 5);
  }
}

// Links that differ by less than a ring has more to carry: the direct exchange stays.
TEST(EstimateAgreement, OfSitesWithLinksThatDifferALittle) {
  TopologyGraph graph = sites_with_a_slow_pair(4);
  graph.between(0, 1).bytes_per_second = graph.between(1, 2).bytes_per_second = 62.5e6;
  graph.between(0, 1).round_trip_s = graph.between(1, 2).round_trip_s = 60e-3;
  const GraphFacts facts = facts_of_graph(graph, 16, {}).value();
  const Both direct = both_of({.name = "64M", .codec = "none"}, facts);
  const Both ring = both_of({.name = "64M", .pin = "site_ring", .codec = "none"}, facts);
  EXPECT_EQ(direct.chosen, "hierarchical");
  EXPECT_LT(direct.simulated, ring.simulated);
}

// Rates of single pairs, as a matrix states them.
TEST(EstimateAgreement, OfTwoSitesWithALink) {
  TopologyGraph graph = sites_of(2, 2, 0);
  graph.between(0, 1).bytes_per_second = graph.between(1, 0).bytes_per_second = 25e6;
  const GraphFacts facts = facts_of_graph(graph, 0, {}).value();
  EXPECT_TRUE(facts.tiers.rates().empty()) << "no site states a rate of its own";
  expect_agreement(facts, {{.name = "all_reduce 64M"}});
}

}  // namespace
}  // namespace seto
