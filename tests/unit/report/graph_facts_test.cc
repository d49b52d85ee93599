#include "src/report/graph_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/core/choice/link_codec.h"
#include "src/report/explain.h"
#include "src/report/explain_sizes.h"
#include "src/report/simulation_model.h"
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
  const TopologyGraph host = read_topology(testing::h100_host_xml()).value();
  TopologyGraph graph = join_graphs({{host, "tokyo", 2}, {host, "osaka", 1}}).value();
  for (const auto& [from, to] : {std::pair<std::size_t, std::size_t>{0, 1}, {1, 0}}) {
    LinkFacts& link = graph.between(from, to);
    link.round_trip_s = from == 0 ? 0.06 : 0.05;
    link.bytes_per_second = from == 0 ? 2.5e8 : 5e8;
    link.source = FactSource::file;
  }
  return graph;
}

Question all_reduce_on(const GraphFacts& facts, std::uint64_t bytes) {
  Question question;
  question.ranks = facts.tiers.ranks();
  return of_size(question, bytes, "", facts.tiers, facts.costs).value();
}

TEST(ExplainGraph, TiersAndConstantsAreThoseOfTheFile) {
  const GraphFacts facts = facts_of_graph(two_sites(), 0, {}).value();
  EXPECT_EQ(facts.tiers.ranks(), 24);
  EXPECT_EQ(facts.tiers.count(), 3);
  EXPECT_EQ(facts.costs.world.latency_seconds, 0.03) << "the longer direction";
  EXPECT_EQ(facts.costs.world.bytes_per_second, 2.5e8) << "the slower direction";
  EXPECT_EQ(facts.costs.site.bytes_per_second, 16 * 25e9 / 8) << "a rank's share of the ports of its host";
  EXPECT_NEAR(facts.costs.node.bytes_per_second, 450e9, 30e9) << "as the simulation has it";
  EXPECT_EQ(facts.crowding, 1) << "32 cores for 8 ranks";
  const auto& origins = facts.origins;
  EXPECT_EQ(origins[0].rate, "GPU links, data sheet");
  EXPECT_EQ(origins[1].rate, "ports of host 1, file, for each rank of a host");
  EXPECT_EQ(origins[2].latency, "half the round trip of tokyo>osaka, file");
  EXPECT_EQ(origins[2].link, "tokyo>osaka");
}

TEST(ExplainGraph, TellsWhichConstantsOfATuningFileAreNotUsed) {
  TopologyGraph host;
  host.hosts.resize(1);
  TopologyGraph graph = join_graphs({{host, "tokyo", 2}, {host, "osaka", 2}}).value();
  graph.between(0, 1).round_trip_s = graph.between(1, 0).round_trip_s = 0.06;
  const CostModel tuned =
      parse_costs("world.latency_us 5000\nworld.gigabytes_per_second 0.2\nsite.latency_us 33\nnode.latency_us 0.5",
                  CostSource::file)
          .value();
  const GraphFacts facts = facts_of_graph(graph, 0, tuned).value();
  EXPECT_EQ(facts.costs.world.latency_seconds, 0.03) << "of the topology";
  EXPECT_EQ(facts.costs.world.bytes_per_second, 0.2e9) << "which states no rate";
  EXPECT_DOUBLE_EQ(facts.costs.site.latency_seconds, 33e-6);
  const std::string text = explain_graph(all_reduce_on(facts, 1 << 20), facts, ReportFormat::text).value();
  EXPECT_THAT(text,
              HasSubstr("\nSETO_TUNING_FILE: not used: world.latency_us; the topology file states what these follow from\n"));
  EXPECT_THAT(text, HasSubstr("33.00 us, 3 GB/s (SETO_TUNING_FILE)"));
  EXPECT_THAT(model_of(facts).assumptions, ::testing::Contains(facts.unused_tuning));
  const GraphFacts shipped = facts_of_graph(graph, 0, {}).value();
  EXPECT_THAT(explain_graph(all_reduce_on(shipped, 1 << 20), shipped, ReportFormat::text).value(), Not(HasSubstr("TUNING")));
}

TEST(ExplainGraph, AFabricAndUplinksBindWhereTheyAreSlower) {
  TopologyGraph graph = two_sites();
  graph.sites[0].fabric.bytes_per_second = 1e9;
  graph.sites[0].fabric.round_trip_s = 40e-6;
  graph.sites[1].downlink.bytes_per_second = 1e8;
  const GraphFacts facts = facts_of_graph(graph, 0, {}).value();
  EXPECT_EQ(facts.costs.site.bytes_per_second, 1e9 / 8) << "the ranks of a host share it";
  EXPECT_EQ(facts.costs.site.latency_seconds, 20e-6);
  EXPECT_EQ(facts.origins[1].rate, "fabric of tokyo, assumed, for each rank of a host");
  EXPECT_EQ(facts.costs.world.bytes_per_second, 1e8);
}

TEST(ExplainGraph, AnyMultipleOfItsRanksIsSpreadOverCopiesOfItsHosts) {
  const TopologyGraph host = read_topology(testing::h100_host_xml()).value();
  EXPECT_EQ(facts_of_graph(host, 0, {}).value().tiers.ranks(), 8);
  const GraphFacts facts = facts_of_graph(host, 64, {}).value();
  EXPECT_EQ(facts.tiers.ranks(), 64);
  EXPECT_EQ(facts.tiers.size(1), 8);
  EXPECT_THAT(facts_of_graph(host, 12, {}).status().text(), HasSubstr("12 is not a multiple"));
  EXPECT_THAT(facts_of_graph(host, -8, {}).status().text(), HasSubstr("-8 is not one of 0"));
  EXPECT_FALSE(facts_of_graph(host, 80'000, {}).ok());
}

TEST(ExplainGraph, TheReportStatesOriginsAndGuesses) {
  TopologyGraph graph = two_sites();
  graph.hosts[0].nodes[0].devices[0].generation = 0;
  const GraphFacts facts = facts_of_graph(graph, 0, {}).value();
  const Question question = all_reduce_on(facts, 64 << 20);
  const std::string text = explain_graph(question, facts, ReportFormat::text).value();
  EXPECT_THAT(text, StartsWith("all_reduce, 64M, 24 ranks, 3 tiers\n"));
  EXPECT_THAT(text, HasSubstr("  world 2 members: 30.000 ms (half the round trip of tokyo>osaka, file), 250 MB/s (tokyo>osaka, "
                              "file); window "));
  EXPECT_THAT(text, HasSubstr("fp16 (chosen for the link)"));
  EXPECT_THAT(
      text, HasSubstr("guessed or not found: PCI links without a speed, taken to have 16 lanes of generation 3: 1; interconnect "
                      "without a rate, taken to be the one of the processor's vendor: 1\n"));
  const std::string json = explain_graph(question, facts, ReportFormat::json).value();
  EXPECT_THAT(json, AllOf(HasSubstr(R"("link":"tokyo>osaka")"), HasSubstr(R"("guessed":"PCI links)")));
}

// A file that states nothing of use leaves the shipped constants, and says so.
TEST(ExplainGraph, APartialFileKeepsWhatItDoesNotState) {
  const GraphFacts facts =
      facts_of_graph(read_topology(R"(<system version="1"><cpu numaid="0"/></system>)").value(), 4, {}).value();
  EXPECT_EQ(facts.tiers.ranks(), 4);
  EXPECT_EQ(facts.costs.site, CostModel().site);
  EXPECT_EQ(facts.origins[1].latency, "shipped");
  EXPECT_THAT(explain_graph(all_reduce_on(facts, 4096), facts, ReportFormat::text).value(), HasSubstr("(shipped)"));
}

TEST(ExplainSizes, StatesTheChoiceOfEachSizeAndTheCrossovers) {
  const GraphFacts facts = facts_of_graph(two_sites(), 0, {}).value();
  Question question;
  question.ranks = facts.tiers.ranks();
  const SizesInput input{facts.tiers, facts.costs, ""};
  const std::string text = explain_sizes(question, 8, std::uint64_t{1} << 30, input, ReportFormat::text).value();
  EXPECT_THAT(text, StartsWith("all_reduce, 24 ranks: the candidate that is chosen for each size\n"));
  EXPECT_THAT(text, AllOf(HasSubstr("\n       8 "), HasSubstr("\n     64K "), HasSubstr("\n      1G ")));
  EXPECT_THAT(text, AllOf(HasSubstr("crossovers: "), HasSubstr(" up to "), HasSubstr(", then "), HasSubstr("in fp16")));
  const std::string json = explain_sizes(question, 1000, 3000, input, ReportFormat::json).value();
  EXPECT_THAT(json, AllOf(HasSubstr(R"("bytes":1000,)"), HasSubstr(R"("bytes":2000,)"), HasSubstr(R"("bytes":3000,)"),
                          Not(HasSubstr(R"("bytes":4000,)")), HasSubstr(R"("next_seconds":)")));
}

// The table says for each size what the report about that size says.
TEST(ExplainSizes, AgreesWithTheReportOfOneSize) {
  const Tiers tiers = made_up_tiers(8, 4, 2).value();
  Question question;
  question.ranks = 8;
  const CostModel costs;
  for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{65536}, std::uint64_t{1} << 28}) {
    const Question sized = of_size(question, bytes, "none", tiers, costs).value();
    const Choice choice = choose(sized, tiers, costs).value();
    const std::string text = explain_sizes(question, bytes, bytes, {tiers, costs, "none"}, ReportFormat::text).value();
    EXPECT_THAT(text, HasSubstr("crossovers: " + std::string(choice.algorithm->name) + "\n"));
  }
}

TEST(ExplainSizes, RefusesWhatIsNoRange) {
  const Tiers tiers = Tiers::flat(2);
  const CostModel costs;
  const SizesInput input{tiers, costs, ""};
  Question question;
  question.ranks = 2;
  EXPECT_THAT(explain_sizes(question, 0, 8, input, ReportFormat::text).status().text(), HasSubstr("bytesTo: 0 to 8"));
  EXPECT_THAT(explain_sizes(question, 16, 8, input, ReportFormat::text).status().text(), HasSubstr("bytesTo: 16 to 8"));
  EXPECT_FALSE(explain_sizes(question, 8, ~std::uint64_t{0}, input, ReportFormat::text).ok());
  question.collective = Collective::barrier;
  EXPECT_THAT(explain_sizes(question, 8, 16, input, ReportFormat::text).status().text(), HasSubstr("a barrier has no size"));
}

}  // namespace
}  // namespace seto
