#include "src/core/choice/link_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/core/call/ids.h"

namespace seto {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = 1 << 20;

Sites two_sites(double round_trip_seconds, bool stated = false) {
  Sites sites;
  sites.links = SiteLinks(2);
  sites.stated = stated;
  for (const std::uint32_t from : {0U, 1U})
    sites.links.add({0, from, 1 - from, {.round_trip_s = round_trip_seconds, .source = FactSource::measured}});
  return sites;
}

CostModel costs_of(const Sites& sites) {
  CostModel costs;
  costs.source = CostSource::measured;
  costs.use(sites);
  return costs;
}

struct Asked {
  std::uint64_t count = kMiB / sizeof(float);
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  Collective collective = Collective::all_reduce;
  const char* setting = "";
  int codec = 0;
  bool deterministic = false;
};

Choice choice_of(const Asked& asked, const CostModel& costs, const Tiers& tiers) {
  Config config;
  config.codec = asked.setting;
  config.deterministic = asked.deterministic;
  Call call;
  call.collective = asked.collective;
  call.count = asked.count;
  call.type = asked.type;
  call.op = asked.op;
  call.codec = asked.codec;
  const Surroundings here{tiers.ranks(), &config, 1, &tiers, &costs, &tiers};
  return choose(question_of(call, here), tiers, costs).value();
}

std::string_view codec_of_call(const Asked& asked, const CostModel& costs, const Tiers& tiers = made_up_tiers(2, 2, 2).value()) {
  return codec_name(choice_of(asked, costs, tiers).codec);
}

TEST(LinkCodec, IsNoneWhereATuningFileSaysNothingOfTheLink) {
  CostModel costs;
  costs.source = CostSource::file;
  costs.use(two_sites(60e-3));
  EXPECT_EQ(codec_of_call({}, costs), "none") << "the shipped constants are those of no link";
  costs.world.latency_seconds = 20e-3;
  EXPECT_EQ(codec_of_call({}, costs), codec_of_call({}, costs_of(two_sites(60e-3, true))));
}

TEST(LinkCodec, IsFp16BetweenFarSites) {
  const CostModel far = costs_of(two_sites(60e-3));
  EXPECT_EQ(codec_of_call({}, far), "fp16");
  EXPECT_EQ(codec_of_call({.op = ReduceOp::avg}, far), "fp16");
  EXPECT_EQ(codec_of_call({.collective = Collective::reduce_scatter}, far), "fp16");
  const Choice choice = choice_of({.count = 64 * kMiB}, far, made_up_tiers(8, 4, 2).value());
  EXPECT_EQ(codec_name(choice.codec), "fp16");
  EXPECT_EQ(choice.coded_tiers, 4) << "nodes and the networks of sites are exact";
}

TEST(LinkCodec, IsNotUsedUnlessTheCallAndTheLinkAskForIt) {
  const CostModel far = costs_of(two_sites(60e-3));
  EXPECT_EQ(codec_of_call({.count = 16 * 1024 - 1}, far), "none") << "below 64 KiB";
  EXPECT_EQ(codec_of_call({.type = DataType::float64}, far), "none");
  EXPECT_EQ(codec_of_call({.type = DataType::int32}, far), "none");
  EXPECT_EQ(codec_of_call({.op = ReduceOp::max}, far), "none");
  EXPECT_EQ(codec_of_call({.deterministic = true}, far), "none");
  EXPECT_EQ(codec_of_call({}, far, made_up_tiers(4, 2, 1).value()), "none") << "one site";
  EXPECT_EQ(codec_of_call({}, CostModel()), "none") << "the link was not measured";
  CostModel fast = far;
  fast.world.bytes_per_second = 50e9;
  EXPECT_EQ(codec_of_call({}, fast), "none") << "exact numbers are as fast";
}

TEST(LinkCodec, FollowsSettingsAndCallsThatNameOne) {
  const CostModel far = costs_of(two_sites(60e-3));
  EXPECT_EQ(codec_of_call({.setting = "none"}, far), "none");
  EXPECT_EQ(codec_of_call({.setting = "int8"}, far), "int8");
  EXPECT_EQ(codec_of_call({.codec = codec_id("none")}, far), "none");
  EXPECT_EQ(codec_of_call({.codec = codec_id("int8")}, far), "int8");
  EXPECT_EQ(codec_of_call({.setting = "none", .codec = codec_id("fp16")}, far), "fp16");
}

TEST(LinkCodec, NeedsFiveMillisecondsUnlessTheSitesAreStated) {
  EXPECT_EQ(codec_of_call({.count = kMiB}, costs_of(two_sites(4.9e-3))), "none");
  EXPECT_EQ(codec_of_call({.count = kMiB}, costs_of(two_sites(4.9e-3, true))), "fp16");
  EXPECT_EQ(codec_of_call({.count = kMiB}, costs_of(two_sites(5e-3))), "fp16");
  CostModel near = costs_of(two_sites(0.9e-3, true));
  near.world = {0.45e-3, 100e6};  // as exchanges measured it
  EXPECT_EQ(codec_of_call({.count = kMiB}, near), "none");
}

TEST(LinkCodec, IsAnnounced) {
  EXPECT_THAT(link_codec_text(costs_of(two_sites(60e-3))), HasSubstr("fp16 between sites (round trip 60 ms; sites found)"));
}

TEST(LinkCodec, TellsWhereAnotherRunMayChooseOtherwise) {
  const auto warns = [](double round_trip_seconds, bool stated) {
    return link_codec_text(costs_of(two_sites(round_trip_seconds, stated))).find("another run may") != std::string::npos;
  };
  EXPECT_TRUE(warns(5.2e-3, false));
  EXPECT_FALSE(warns(5.2e-3, true)) << "a statement is the same in every run";
  EXPECT_FALSE(warns(60e-3, false));
}

// ---- choice by links ----

TEST(ChoiceByLinks, UsesTheWorstLinkBetweenSites) {
  Sites sites = two_sites(60e-3);
  const CostModel costs = costs_of(sites);
  EXPECT_DOUBLE_EQ(costs.world.latency_seconds, 30e-3);
  EXPECT_EQ(costs.world.bytes_per_second, kAssumedBytesPerSecond);
  const Flow unknown = flow_on(TierKind::world, made_up_tiers(2, 2, 2).value(), costs);
  EXPECT_EQ(unknown.window_bytes, 32 * kMiB) << "a part of the memory until the rate is known";
  EXPECT_EQ(unknown.slice_bytes, 512U << 10);
  EXPECT_EQ(unknown.order, StepOrder::readiness);
  for (const std::uint32_t from : {0U, 1U})
    sites.links.add(
        {0,
         from,
         1 - from,
         {.bytes_per_second = 250e6, .round_trip_s = 60e-3, .socket_bytes_per_second = 50e6, .source = FactSource::traffic}});
  const Flow known = flow_on(TierKind::world, made_up_tiers(2, 2, 2).value(), costs_of(sites));
  EXPECT_EQ(costs_of(sites).world.bytes_per_second, 250e6);
  EXPECT_EQ(known.window_bytes, 30'000'000U);
  EXPECT_EQ(known.sockets, 8U) << "connections are open before traffic is measured";
  EXPECT_NE(costs_of(sites).links_digest, costs.links_digest);
}

TEST(ChoiceByLinks, TakesTheSlowestStatedRateWhereNoneIsMeasured) {
  Sites sites = two_sites(60e-3);
  sites.rates = {{50e6, 25e6}, {125e6, 125e6}};
  EXPECT_EQ(costs_of(sites).world.bytes_per_second, 25e6);
}

TEST(ChoiceByLinks, TheRanksOfAStatedSiteDivideItsSockets) {
  CostModel costs = costs_of(two_sites(60e-3, true));
  const auto sockets = [&](int ranks, int nodes, double rate = 0) {
    Tiers tiers = made_up_tiers(ranks, nodes, 2).value();
    if (rate > 0) tiers.take_rates({{rate, rate}, {rate, rate}});
    return flow_on(TierKind::world, tiers, costs).sockets;
  };
  EXPECT_EQ(sockets(2, 2), 8U);
  EXPECT_EQ(sockets(8, 4), 2U);
  EXPECT_EQ(sockets(2, 2, 250e6), 5U) << "a stated rate counts: 15 MB a round trip";
  EXPECT_EQ(sockets(8, 4, 250e6), 2U);
  costs = costs_of(two_sites(60e-3, false));
  EXPECT_EQ(sockets(8, 4), 4U) << "where sites are found, connections know the hosts only";
}

TEST(ChoiceByLinks, LeavesShippedAndStatedConstantsAlone) {
  for (const CostSource source : {CostSource::shipped, CostSource::file}) {
    CostModel costs;
    costs.source = source;
    costs.use(two_sites(60e-3, true));
    EXPECT_EQ(costs.world, CostModel().world);
    EXPECT_TRUE(costs.sites_are_stated);
  }
}

// Exchanges between processes of a machine that other programs keep busy take milliseconds. The kernel saw 8 us.
TEST(ChoiceByLinks, ALinkThatTheKernelSawNearIsNearHoweverLongExchangesTake) {
  CostModel busy;
  busy.source = CostSource::measured;
  busy.site = {4e-3, 1e9, 1e-3};
  busy.world = {4e-3, 1e9, 1e-3};
  Sites sites = two_sites(8e-6, true);
  sites.longest_within_s = 8e-6;
  CostModel costs = busy;
  costs.use(sites);
  const Tiers tiers = made_up_tiers(4, 4, 2).value();
  EXPECT_EQ(codec_of_call({}, costs, tiers), "none");
  for (const TierKind kind : {TierKind::site, TierKind::world}) {
    EXPECT_LT(costs.of(kind).latency_seconds, 0.2e-3);
    EXPECT_LE(costs.of(kind).message_seconds, costs.of(kind).latency_seconds / 2);
    EXPECT_EQ(costs.of(kind).bytes_per_second, 1e9);
    EXPECT_EQ(flow_on(kind, tiers, costs).sockets, 1U);
    EXPECT_EQ(flow_on(kind, tiers, costs).order, StepOrder::skewed);
  }
  sites = two_sites(0.99e-3, true);
  costs = busy;
  costs.use(sites);
  EXPECT_EQ(flow_on(TierKind::world, tiers, costs).sockets, 1U) << "near up to the limit";
  EXPECT_EQ(costs.site, busy.site) << "the kernel does not know this one";
  CostModel quick = busy;
  quick.world.latency_seconds = 12e-6;
  costs = quick;
  costs.use(two_sites(8e-6, true));
  EXPECT_EQ(costs.world.latency_seconds, 12e-6) << "with the software of both ends";
}

TEST(ChoiceByLinks, OneMegabyteOverSixtyMillisecondsIsOneExchange) {
  const CostModel costs = costs_of(two_sites(60e-3));
  const Choice choice = choice_of({.setting = "none"}, costs, made_up_tiers(2, 2, 2).value());
  EXPECT_EQ(choice.algorithm->name, "one_shot");
  for (const Candidate& candidate : choice.candidates)
    if (candidate.algorithm == choice.algorithm) {
      EXPECT_EQ(candidate.estimate.tiers[0].hops, 1);
      EXPECT_NEAR(candidate.estimate.seconds, 38.4e-3, 1e-3);
    }
}

TEST(ChoiceByLinks, ADeterministicCallIgnoresCrowdingAndFoundSites) {
  const Tiers found = made_up_tiers(4, 4, 2).value();
  const Tiers stated = made_up_tiers(4, 4, 1).value();
  const CostModel costs = costs_of(two_sites(60e-3));
  Config config;
  Call call;
  call.count = kMiB;
  const Surroundings here{4, &config, 8, &found, &costs, &stated};
  EXPECT_EQ(&here.tiers_of(question_of(call, here)), &found);
  call.deterministic = true;
  const Question question = question_of(call, here);
  EXPECT_EQ(question.crowding, 1);
  EXPECT_EQ(&here.tiers_of(question), &stated);
}

}  // namespace
}  // namespace seto
