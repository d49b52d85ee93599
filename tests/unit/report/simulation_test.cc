// A call on a topology graph: where its ranks are, what their links are, what is predicted, and how it is shown.

#include "src/report/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "src/core/choice/link_codec.h"
#include "src/report/graph_facts.h"
#include "src/report/simulation_model.h"
#include "src/report/simulation_text.h"
#include "src/topology/graph/join_graphs.h"
#include "src/topology/xml/topology_file.h"
#include "src/topology/xml/xml_element.h"
#include "tests/support/h100_host.h"

namespace seto {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

SimulationModel model_on(const TopologyGraph& graph, int ranks, const CostModel& costs = {}) {
  return model_of(facts_of_graph(graph, ranks, costs).value());
}

// Two sites, 1 Gbit/s up and down, 60 ms apart; hosts of a site have 10 Gbit/s.
TopologyGraph two_sites(std::size_t hosts_each) {
  TopologyGraph graph;
  graph.sites.resize(2);
  for (std::size_t site = 0; site < 2; ++site) {
    graph.sites[site].name = site == 0 ? "west" : "east";
    graph.sites[site].fabric.bytes_per_second = 1.25e9;
    graph.sites[site].fabric.round_trip_s = 20e-6;
    graph.sites[site].uplink.bytes_per_second = 125e6;
    graph.sites[site].downlink.bytes_per_second = 125e6;
    for (std::size_t host = 0; host < hosts_each; ++host) {
      TopologyHost& made = graph.hosts.emplace_back();
      made.name = graph.sites[site].name + std::to_string(host);
      made.site = site;
    }
    graph.between(site, 1 - site).round_trip_s = 60e-3;
  }
  return graph;
}

Question question_on(const SimulationModel& model, std::uint64_t bytes, std::string_view pin = {}) {
  Question question;
  question.ranks = model.tiers.ranks();
  question.bytes = bytes;
  question.pin = pin;
  return question;
}

struct Simulated {
  SimulationModel model;
  Simulation simulation;
};

Simulated simulated(const TopologyGraph& graph, int ranks, std::uint64_t bytes, std::string_view pin = {},
                    Trace trace = Trace::none) {
  SimulationModel model = model_on(graph, ranks);
  Result<Simulation> simulation = simulate_call(question_on(model, bytes, pin), model, trace);
  EXPECT_TRUE(simulation.ok()) << simulation.status().text();
  return {std::move(model), std::move(simulation).value()};
}

double bytes_of(const Simulation& simulation, const std::string& kind) {
  double bytes = 0;
  for (const LinkLoad& load : simulation.loads)
    if (load.link.kind == kind) bytes += load.bytes;
  return bytes;
}

TEST(SimulationModels, RanksAreSpreadEvenlyOverHosts) {
  const SimulationModel model = model_on(two_sites(2), 10);
  EXPECT_EQ(model.tiers.ranks(), 10);
  EXPECT_EQ(model.tiers.count(), 3);
  EXPECT_EQ(model.tiers.between(0, 1), 0);
  EXPECT_EQ(model.tiers.between(0, 4), 1) << "the first host has two ranks, the second three";
  EXPECT_EQ(model.tiers.between(0, 5), 2);
}

TEST(SimulationModels, WithoutANumberAHostIsARankOrHasOneForEachGpu) {
  EXPECT_EQ(model_on(two_sites(3), 0).tiers.ranks(), 6);
  const TopologyGraph host = read_topology(testing::h100_host_xml()).value();
  EXPECT_EQ(model_on(host, 0).tiers.ranks(), 8);
}

TEST(SimulationModels, GpusAndNicsGiveTheirRates) {
  const TopologyGraph host = read_topology(testing::h100_host_xml()).value();
  const TopologyGraph hosts = join_graphs({{host, "", 2}}).value();
  const SimulationModel model = model_on(hosts, 0);
  const SimulatedLink inside = model.machine.link(0, 1);
  EXPECT_NEAR(1 / inside.ns_per_byte, 450, 30) << "18 links of NVLink 4, in bytes a nanosecond";
  const SimulatedLink outside = model.machine.link(0, 8);
  EXPECT_NEAR(1 / outside.ns_per_byte, 50, 0.1) << "16 ports of 200 Gbit/s for 8 ranks";
  EXPECT_NE(inside.wire, outside.wire);
  EXPECT_EQ(outside.wire, model.machine.link(0, 9).wire) << "a rank has one set of NICs";
  EXPECT_NE(outside.wire, model.machine.link(1, 8).wire);
}

// A host without GPUs whose ports have these rates in Mbit/s; a negative rate is that of a port that is down.
TopologyGraph hosts_with_ports(const std::vector<int>& rates_mbit) {
  TopologyGraph graph;
  for (int host = 0; host < 2; ++host) {
    TopologyHost& made = graph.hosts.emplace_back();
    made.name = std::to_string(host);  // hosts of one site
    for (const int rate : rates_mbit) {
      NetPort& port = made.nodes.emplace_back().ports.emplace_back();
      port.speed_mbit = std::abs(rate);
      port.up = rate > 0;
    }
  }
  return graph;
}

// seto explain counts the same ports: those that are up and have at least half the rate of the fastest.
TEST(SimulationModels, OnlyUsablePortsOfAHostCount) {
  for (const auto& [rates, gigabytes] : std::initializer_list<std::pair<std::vector<int>, double>>{
           {{100'000, 100'000}, 25}, {{100'000, -100'000}, 12.5}, {{100'000, 1'000}, 12.5}}) {
    const SimulationModel model = model_on(hosts_with_ports(rates), 2);
    EXPECT_DOUBLE_EQ(1 / model.machine.link(0, 1).ns_per_byte, gigabytes);
    EXPECT_DOUBLE_EQ(facts_of_graph(hosts_with_ports(rates), 0, {}).value().costs.site.bytes_per_second, gigabytes * 1e9);
  }
}

TEST(SimulationModels, RanksOfAHostWithoutGpusShareAllItsPorts) {
  const SimulationModel model = model_on(hosts_with_ports({100'000, 100'000}), 8);
  const SimulatedLink link = model.machine.link(0, 4);
  EXPECT_DOUBLE_EQ(1 / link.ns_per_byte, 25) << "one rank alone has all ports";
  EXPECT_EQ(link.wire, model.machine.link(1, 5).wire);
}

TEST(SimulationModels, AMessageTakesItsPartOfALatency) {
  CostModel costs;
  costs.site.message_seconds = 3e-6;
  const SimulationModel model = model_on(two_sites(2), 4, costs);
  const SimulatedLink link = model.machine.link(0, 1);
  EXPECT_DOUBLE_EQ(link.message_ns, 3000);
  EXPECT_DOUBLE_EQ(link.latency_ns, 10'000 - 2 * 3000);
  EXPECT_FALSE(link.written_once);
  EXPECT_THAT(model.assumptions, Contains(HasSubstr("a message takes 3.0 us of the core at each end")));
  costs.site.message_seconds = 1;
  EXPECT_DOUBLE_EQ(model_on(two_sites(2), 4, costs).machine.link(0, 1).latency_ns, 0) << "not more than the latency";
}

TEST(SimulationModels, WhatIsNotStatedIsNamed) {
  TopologyGraph graph = two_sites(1);
  EXPECT_THAT(model_on(graph, 2).assumptions, Not(Contains(HasSubstr("between sites"))));
  graph.sites[0].uplink = {.medium = LinkMedium::wide_area};
  graph.sites[1].downlink = {.medium = LinkMedium::wide_area};
  graph.between(0, 1) = {.medium = LinkMedium::wide_area};
  const SimulationModel model = model_on(graph, 2);
  EXPECT_THAT(model.assumptions, Contains("between sites: 125 MB/s each way"));
  EXPECT_THAT(model.assumptions, Contains("between sites: a round trip of 60.0 ms"));
}

TEST(SimulationModels, ImpossibleNumbersOfRanksAreRefused) {
  EXPECT_THAT(std::string(facts_of_graph(two_sites(2), 3, {}).status().text()), HasSubstr("3 are fewer than the 4 hosts"));
  EXPECT_FALSE(facts_of_graph(two_sites(2), -1, {}).ok());
  EXPECT_FALSE(facts_of_graph({}, 2, {}).ok());
}

TEST(SimulatedCalls, TwoSitesExchangeOverTheirUplinks) {
  const Simulated one = simulated(two_sites(1), 2, 100'000'000);
  EXPECT_NEAR(one.simulation.seconds, 0.8 + 0.030, 0.02);
  EXPECT_NEAR(bytes_of(one.simulation, "uplink"), 2e8, 1e3);
  EXPECT_NEAR(bytes_of(one.simulation, "host, sending"), 2e8, 1e3);
}

TEST(SimulatedCalls, RanksOfAHostShareItsPortAndItsUplink) {
  const Simulated one = simulated(two_sites(2), 8, 100'000'000, "hierarchical");
  EXPECT_NEAR(one.simulation.seconds, 0.8 + 0.030, 0.25) << "the uplink is what binds";
  EXPECT_NEAR(bytes_of(one.simulation, "uplink"), 2e8, 1e3);
}

TEST(SimulatedCalls, ADirectedMatrixIsTakenAsItIs) {
  TopologyGraph graph = two_sites(1);
  graph.between(1, 0).bytes_per_second = 12.5e6;  // one direction is ten times slower
  const Simulated one = simulated(graph, 2, 10'000'000);
  EXPECT_NEAR(one.simulation.seconds, 0.8 + 0.030, 0.02);
}

TEST(SimulatedCalls, ACodecHalvesTheBytesBetweenSites) {
  SimulationModel model = model_on(two_sites(1), 2);
  Question question = question_on(model, 100'000'000);
  allow_link_codec(question, ReduceOp::sum, model.tiers, model.costs);
  const Simulation simulation = simulate_call(question, model).value();
  EXPECT_NE(simulation.choice.codec, 0);
  EXPECT_NEAR(bytes_of(simulation, "uplink"), 1e8, 1e6);
  EXPECT_THAT(simulation_title(simulation), HasSubstr("in fp16, 2 ranks"));
}

TEST(SimulatedCalls, AnAlgorithmThatCannotRunIsRefusedWithTheReason) {
  SimulationModel model = model_on(two_sites(1), 2);
  EXPECT_THAT(std::string(simulate_call(question_on(model, 1000, "hierarchical"), model).status().text()),
              HasSubstr("hierarchical cannot run here: there is one tier"));
  EXPECT_THAT(std::string(simulate_call(question_on(model, 1000, "magic"), model).status().text()),
              AllOf(HasSubstr("all_reduce has no such algorithm; it has "), HasSubstr("ring"), Not(HasSubstr("did you mean"))));
  EXPECT_THAT(std::string(simulate_call(question_on(model, 1000, "rign"), model).status().text()),
              EndsWith("; did you mean ring"));
}

TEST(SimulatedCalls, TooManyStepsAreRefusedBeforeTheyTakeMemory) {
  TopologyGraph graph;
  graph.hosts.resize(1);
  SimulationModel model = model_on(graph, 20'000);
  EXPECT_THAT(std::string(simulate_call(question_on(model, 1 << 30, "ring"), model).status().text()),
              HasSubstr("simulate fewer ranks"));
}

// The root of a rooted call has many more steps than the others: what counts is all of them.
TEST(SimulatedCalls, StepsAreThoseOfAllRanks) {
  TopologyGraph graph;
  graph.hosts.resize(1);
  SimulationModel model = model_on(graph, 15'000);
  Question question = question_on(model, 16, "direct");
  question.collective = Collective::gather;
  EXPECT_TRUE(simulate_call(question, model).ok()) << "15,000 steps of the root, one of each other rank";
}

TEST(SimulatedCalls, ATraceIsKeptOnlyIfAskedFor) {
  const Simulated plain = simulated(two_sites(2), 4, 1000, "ring");
  EXPECT_TRUE(plain.simulation.trace.steps.empty() && plain.simulation.trace.messages.empty());
  EXPECT_TRUE(plain.simulation.programs.empty());
  const Simulated traced = simulated(two_sites(2), 4, 1000, "ring", Trace::kept);
  EXPECT_FALSE(traced.simulation.trace.steps.empty() || traced.simulation.trace.messages.empty());
  EXPECT_EQ(traced.simulation.seconds, plain.simulation.seconds);
}

TEST(SimulationText, NamesTheTimeTheLoadsAndTheAssumptions) {
  const Simulated one = simulated(two_sites(6), 12, 1'000'000, "hierarchical");
  const std::string text = simulation_text(one.simulation, one.model);
  EXPECT_THAT(text, StartsWith("all_reduce, 1000000, hierarchical, 12 ranks\npredicted: "));
  EXPECT_THAT(text, AllOf(HasSubstr("  uplink\n    west "), HasSubstr("at   125 MB/s, busy "), HasSubstr("8 more, busy "),
                          HasSubstr("within a host: a hop takes")));
  EXPECT_THAT(simulation_json(one.simulation, one.model),
              AllOf(StartsWith(R"({"collective":"all_reduce","part_bytes":1000000,"ranks":12,"algorithm":"hierarchical")"),
                    HasSubstr(R"("kind":"uplink","name":"west")"), HasSubstr(R"("seconds":)")));
}

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(SimulationChart, HasARowForEachLaneAndBarsWithinTheTime) {
  const Simulated one = simulated(two_sites(2), 4, 1'000'000, "ring", Trace::kept);
  const std::string svg = simulation_svg(one.simulation);
  ASSERT_TRUE(parse_xml(svg).ok());
  std::size_t lanes = 0;
  for (const Program& program : one.simulation.programs) lanes += program.lanes.size();
  EXPECT_EQ(count_of(svg, ">from ") + count_of(svg, ">to ") + count_of(svg, ">in memory"), lanes);
  const XmlDocument document = parse_xml(svg).value();
  for (const XmlElement& element : document.root.children) {
    if (element.name != "rect" || element.attribute("x") == nullptr) continue;
    EXPECT_GE(std::atof(element.attribute("x")->c_str()), 230);
    EXPECT_LE(std::atof(element.attribute("x")->c_str()) + std::atof(element.attribute("width")->c_str()), 230 + 900 + 1);
  }
}

TEST(SimulationChart, StaysSmallForManyRanksAndSlices) {
  const Simulated one = simulated(two_sites(8), 64, 64 << 20, "hierarchical", Trace::kept);
  EXPECT_EQ(one.simulation.shown.size(), std::size_t{kMostShownRanks});
  const std::string svg = simulation_svg(one.simulation);
  EXPECT_THAT(svg, HasSubstr("hop 0: "));
  EXPECT_LT(svg.size(), 600'000U);
}

}  // namespace
}  // namespace seto
