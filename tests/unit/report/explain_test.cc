#include "src/report/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/core/choice/link_codec.h"
#include "src/core/connect/context.h"
#include "src/report/explain_tiers.h"

namespace seto {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Question question_on(Collective collective, int ranks) {
  Question question;
  question.collective = collective;
  question.ranks = ranks;
  question.bytes = part_bytes(collective, 64 << 20, ranks);
  return question;
}

std::string report(const Question& question, ReportFormat format = ReportFormat::text) {
  const Result<std::string> text = explain(question, Tiers::flat(question.ranks), {}, format);
  EXPECT_TRUE(text.ok()) << text.status().text();
  return text.value();
}

TEST(Explain, SizesAreThoseOfTheCollective) {
  EXPECT_THAT(report(question_on(Collective::all_reduce, 4)), StartsWith("all_reduce, 64M, 4 ranks, 1 tier\n"));
  EXPECT_THAT(report(question_on(Collective::broadcast, 4)), StartsWith("broadcast, 64M, 4 ranks"));
  EXPECT_THAT(report(question_on(Collective::all_gather, 4)), StartsWith("all_gather, parts of 16M, 4 ranks"));
  const std::string barrier = report(question_on(Collective::barrier, 4));
  EXPECT_THAT(barrier, StartsWith("barrier, 4 ranks"));
  EXPECT_THAT(barrier, Not(HasSubstr("slices")));
}

TEST(Explain, AnIgnoredPinIsReported) {
  Question question = question_on(Collective::all_reduce, 4);
  question.pin = "tree";
  EXPECT_THAT(report(question), HasSubstr("\ntree is pinned, but all_reduce has no such algorithm; the pin is ignored\n"));
  EXPECT_THAT(report(question, ReportFormat::json), HasSubstr("\"pin_ignored\""));
  question.pin = "hierarchical";
  EXPECT_THAT(report(question), HasSubstr("hierarchical is pinned, but it is impossible here (there is one tier"));
  question.pin = "ring";
  EXPECT_THAT(report(question), Not(HasSubstr("is ignored")));
  EXPECT_THAT(report(question, ReportFormat::json), Not(HasSubstr("pin_ignored")));
}

TEST(Explain, APinThatIsFollowedIsNamedWithWhatItCosts) {
  Question question = question_on(Collective::all_reduce, 4);
  question.bytes = 1 << 10;
  question.pin = "ring";
  const std::string text = report(question);
  EXPECT_THAT(text, ::testing::ContainsRegex("\nring is pinned: [0-9.]+ ms predicted, [0-9.]+ times the [0-9.]+ ms of one_shot, "
                                             "which is the best\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("one_shot +[0-9.]+ us  ring is pinned: this one takes 0\\.[0-9]+ times its time\n"));
  EXPECT_THAT(report(question, ReportFormat::json),
              AllOf(HasSubstr(R"("pin":{"algorithm":"ring","seconds":)"), HasSubstr(R"("best":"one_shot","best_seconds":)")));
  question.pin = "one_shot";
  EXPECT_THAT(report(question), HasSubstr(" ms predicted, and no other is faster\n"));
  question.pin = {};
  EXPECT_THAT(report(question), Not(HasSubstr("pinned")));
  EXPECT_THAT(report(question, ReportFormat::json), Not(HasSubstr("\"pin\"")));
}

TEST(Explain, ACandidateWithTooManyPeersIsNamedWithItsTime) {
  const Question question = question_on(Collective::all_reduce, 272);
  const auto text = [&](int hosts) {
    return explain(question, made_up_tiers(272, hosts, 1).value(), {}, ReportFormat::text).value();
  };
  EXPECT_THAT(text(34), ContainsRegex("hierarchical +[0-9.]+ ms  needs 33 peers on other hosts, more than 32: [0-9.]+ times"));
  EXPECT_THAT(text(34), ContainsRegex("\n\\* host_ring +[0-9.]+ ms  chosen\n"));
  EXPECT_THAT(text(17), ContainsRegex("host_ring +[0-9.]+ ms  it has few peers, for jobs of more than 33 hosts: [0-9.]+ times"));
}

// Two algorithms for a barrier of two ranks do the same, so no part of the time explains the choice.
TEST(Explain, ATieIsStatedAsOne) {
  const std::string barrier = report(question_on(Collective::barrier, 2));
  EXPECT_THAT(barrier, HasSubstr("as fast; the first is taken\n"));
  EXPECT_THAT(barrier, Not(HasSubstr("overlap")));
}

TEST(Explain, SettingsOfTheCutAreNamed) {
  Config config;
  const Question question = question_on(Collective::all_reduce, 4);
  EXPECT_THAT(explain(question, Tiers::flat(4), {}, ReportFormat::text, config).value(), Not(HasSubstr("SETO_S")));
  config.slice_bytes = 96 << 10;
  config.slot_depth = 5;
  EXPECT_THAT(explain(question, Tiers::flat(4), {}, ReportFormat::text, config).value(),
              HasSubstr("\nslices of 96K (SETO_SLICE_BYTES), 5 in flight (SETO_SLOT_DEPTH)"));
  EXPECT_THAT(explain(question, Tiers::flat(4), {}, ReportFormat::json, config).value(),
              HasSubstr("\"slice_bytes\":98304,\"slots\":5,"));
}

TEST(Explain, StatesTheOriginOfTheConstants) {
  const Question question = question_on(Collective::all_reduce, 2);
  EXPECT_THAT(report(question), HasSubstr("shipped constants: "));
  EXPECT_THAT(report(question), HasSubstr("; a communicator measures its own, or reads SETO_TUNING_FILE\n"));
  CostModel costs;
  costs.source = CostSource::file;
  EXPECT_THAT(explain(question, Tiers::flat(2), costs, ReportFormat::text).value(), Not(HasSubstr("measures its own")));
}

TEST(Explain, OversubscribedCoresAreReported) {
  const int cores = usable_cores();
  EXPECT_THAT(report(question_on(Collective::all_reduce, cores)), Not(HasSubstr("a core")));
  const Question pending = question_on(Collective::all_reduce, 3 * cores);
  EXPECT_THAT(report(pending), HasSubstr("\n3 ranks for each core"));
  // every rank on its own node
  const Tiers apart = made_up_tiers(3 * cores, 3 * cores, 1).value();
  EXPECT_THAT(explain(pending, apart, {}, ReportFormat::text).value(), Not(HasSubstr("a core")));
}

TEST(Explain, SplitsEstimatesByTier) {
  Question question = question_on(Collective::all_reduce, 8);
  const Tiers tiers = made_up_tiers(8, 2, 1).value();
  const std::string text = explain(question, tiers, {}, ReportFormat::text).value();
  // In a node each of 4 ranks keeps a quarter of 64M; of that, halves cross the port of a rank in both phases.
  EXPECT_THAT(text, AllOf(HasSubstr("site 2 hops "), HasSubstr("wire 16M ")));
  const std::string json = explain(question, tiers, {}, ReportFormat::json).value();
  EXPECT_THAT(json, AllOf(HasSubstr("{\"tier\":\"site\",\"hops\":2,"), HasSubstr("\"wire_bytes\":16777216,")));
  EXPECT_THAT(report(question_on(Collective::all_reduce, 4)), Not(HasSubstr("wire")))
      << "within a node bytes pass through memory";
}

TEST(Explain, StatesMessagesBeyondThoseOfTheHops) {
  const Question question = question_on(Collective::all_reduce, 4);
  const Tiers hosts = made_up_tiers(4, 4, 1).value();
  CostModel costs;
  costs.site.message_seconds = 3e-6;
  const std::string text = explain(question, hosts, costs, ReportFormat::text).value();
  EXPECT_THAT(text,
              ::testing::ContainsRegex("one_shot +site 1 hop 8.00 us, wire 192M [0-9.]+ ms, 1536 messages 4.602 ms; memory "));
  EXPECT_THAT(text, HasSubstr("shipped constants: site 8 us, 3 GB/s, 3 us for a message at each end"));
  const std::string json = explain(question, hosts, costs, ReportFormat::json).value();
  EXPECT_THAT(json, AllOf(HasSubstr("\"message_seconds\":3e-06"), HasSubstr("\"messages\":")));
}

TEST(Explain, StatesTheOrderOfALongLink) {
  const Question question = question_on(Collective::all_reduce, 4);
  const Tiers sites = made_up_tiers(4, 4, 4).value();
  EXPECT_THAT(explain(question, sites, {}, ReportFormat::text).value(), HasSubstr("readiness order"));
  EXPECT_THAT(report(question), Not(HasSubstr("readiness order")));
}

// Ranks of two sites, 60 ms from each other.
CostModel costs_of_far_sites() {
  Sites sites;
  sites.links = SiteLinks(2);
  for (const std::uint32_t from : {0U, 1U})
    sites.links.add({0, from, 1 - from, {.round_trip_s = 60e-3, .source = FactSource::measured}});
  CostModel costs;
  costs.source = CostSource::measured;
  costs.node.latency_seconds = 0.3e-6;
  costs.use(sites);
  return costs;
}

TEST(Explain, StatesTheFactsOfEachTierAndWhereTheyComeFrom) {
  Question question = question_on(Collective::all_reduce, 8);
  const Tiers tiers = made_up_tiers(8, 4, 2).value();
  const CostModel costs = costs_of_far_sites();
  allow_link_codec(question, ReduceOp::sum, tiers, costs);
  const std::string text = explain(question, tiers, costs, ReportFormat::text).value();
  EXPECT_THAT(
      text,
      HasSubstr("  node 2 members: 0.30 us, 15 GB/s (measured by exchanges); shared memory, long messages from 16K, exact\n"));
  EXPECT_THAT(text, HasSubstr("  world 2 members: 30.000 ms (half the round trip, measured), 125 MB/s (assumed); window 32M, 4 "
                              "sockets for a pair of ranks, slices of "));
  EXPECT_THAT(text, HasSubstr(" on the wire, fp16 (chosen for the link)\n"));
  const std::string json = explain(question, tiers, costs, ReportFormat::json).value();
  EXPECT_THAT(json, AllOf(HasSubstr(R"("links":[{"tier":"node","members":2,)"), HasSubstr(R"("long_message_bytes":16384,)"),
                          HasSubstr(R"("rate_origin":"assumed")"), HasSubstr(R"("window_bytes":33554432,"sockets":4,)"),
                          HasSubstr(R"("codec":"fp16","codec_origin":"chosen for the link")")));
}

// A measurement that was not believed leaves the shipped constants.
TEST(Explain, SaysThatANodeWasTooBusyToBeMeasured) {
  const CostModel costs = parse_costs(costs_text({}), CostSource::measured).value();
  const Tiers tiers = made_up_tiers(2, 1, 1).value();
  EXPECT_THAT(explain(question_on(Collective::all_reduce, 2), tiers, costs, ReportFormat::text).value(),
              HasSubstr("0.25 us, 15 GB/s (shipped: what was measured is not plausible); shared memory"));
  EXPECT_THAT(constants_text(tiers, costs), HasSubstr("0.05 us for a message at each end (shipped: the machine was too busy)"));
}

TEST(Explain, ShortensTheWindow) {
  const std::string text =
      explain(question_on(Collective::all_reduce, 2), made_up_tiers(2, 2, 2).value(), {}, ReportFormat::text).value();
  EXPECT_THAT(text, HasSubstr("30.000 ms, 100 MB/s (shipped); window 11.4M, 8 sockets for a pair of ranks"));
}

TEST(Explain, NamesTheLinkThatBinds) {
  Sites sites;
  sites.links = SiteLinks(3);
  for (std::uint32_t from = 0; from < 3; ++from)
    for (std::uint32_t to = 0; to < 3; ++to)
      if (from != to) sites.links.add({0, from, to, {.round_trip_s = 10e-3 * (1 + from + to), .source = FactSource::measured}});
  CostModel costs;
  costs.source = CostSource::measured;
  costs.use(sites);
  const Question question = question_on(Collective::all_reduce, 3);
  const Tiers tiers = made_up_tiers(3, 3, 3).value();
  const Choice choice = choose(question, tiers, costs).value();
  Config config;
  config.tcp_streams = 3;
  config.slice_bytes = 64 << 10;
  const LiveFacts live{sites};
  const std::vector<TierFacts> facts = tier_facts(question, tiers, costs, choice, config, &live);
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_THAT(text_of(facts[0]),
              HasSubstr(", 3 sockets for a pair of ranks (SETO_TCP_STREAMS), slices of 64K on the wire (SETO_SLICE_BYTES)"));
  EXPECT_EQ(facts[0].link, "1>2");
  EXPECT_EQ(facts[0].latency_origin, "half the round trip of 1>2, measured");
}

TEST(Explain, StatesInWhichPartACandidateLoses) {
  const std::string text =
      explain(question_on(Collective::all_reduce, 2), made_up_tiers(2, 2, 2).value(), costs_of_far_sites(), ReportFormat::text)
          .value();
  EXPECT_THAT(text, ::testing::ContainsRegex("two_shot .* times the time of the chosen one: hops on world 30.000 ms more\n"));
}

TEST(Explain, StatesTheLimitOfParts) {
  Question question;
  question.ranks = 65;
  question.bytes = 8;
  const std::string text = explain(question, Tiers::flat(65), {}, ReportFormat::text).value();
  EXPECT_NE(text.find("adds 65 parts in one step, the engine at most 64"), std::string::npos) << text;
  question.ranks = 64;
  EXPECT_EQ(explain(question, Tiers::flat(64), {}, ReportFormat::text).value().find("parts in one step"), std::string::npos);
}

}  // namespace
}  // namespace seto
