#include "src/core/choice/planner.h"

#include <gtest/gtest.h>

#include <cmath>

#include "src/codec/codec.h"
#include "src/engine/coding.h"
#include "src/engine/lowering.h"

namespace seto {
namespace {

std::string_view chosen(Collective collective, std::uint64_t bytes, const Tiers& tiers, const CostModel& costs = {}) {
  Question question;
  question.collective = collective;
  question.ranks = tiers.ranks();
  question.bytes = bytes;
  const Result<Choice> choice = choose(question, tiers, costs);
  EXPECT_TRUE(choice.ok()) << choice.status().text();
  return choice.value().algorithm->name;
}

TEST(Planner, LatencyDecidesForSmallCallsAndBandwidthForLargeOnes) {
  const Tiers tiers = Tiers::flat(8);
  EXPECT_EQ(chosen(Collective::all_reduce, 8, tiers), "one_shot");
  EXPECT_EQ(chosen(Collective::all_reduce, 64 << 20, tiers), "two_shot");
}

TEST(Planner, ConstantsMoveTheCrossover) {
  const Tiers tiers = Tiers::flat(8);
  CostModel slow_to_start;
  slow_to_start.node.latency_seconds = 1e-3;
  CostModel slow_to_move;
  slow_to_move.node.bytes_per_second = 1e6;
  EXPECT_EQ(chosen(Collective::all_reduce, 64 << 10, tiers, slow_to_start), "one_shot");
  EXPECT_EQ(chosen(Collective::all_reduce, 64 << 10, tiers, slow_to_move), "two_shot");
}

// Four ranks of two cores over sockets: each message takes a core that other ranks wait for. Measured (1 KiB, 10 us, 4.8 GB/s):
// one exchange of all 45 us, two rounds of pairs 36, two_shot 86; at 16 KiB 98, 80 and 149.
TEST(Planner, FewMessagesWinWhereRanksShareCoresOverSockets) {
  const Tiers tiers = made_up_tiers(4, 4, 1).value();
  CostModel costs;
  costs.site = {10e-6, 4.8e9, 3.3e-6};
  const auto name = [&](std::uint64_t bytes, double crowding) {
    Question question;
    question.ranks = 4;
    question.bytes = bytes;
    question.crowding = crowding;
    return choose(question, tiers, costs).value().algorithm->name;
  };
  for (const std::uint64_t bytes : {std::uint64_t{1} << 10, std::uint64_t{16} << 10})
    EXPECT_EQ(name(bytes, 2), "recursive_doubling") << bytes;
  EXPECT_EQ(name(1 << 20, 2), "two_shot") << "bytes decide";
  costs.site.message_seconds = 0;
  EXPECT_EQ(name(1 << 10, 2), "one_shot") << "without a cost of messages hops decide";
}

TEST(Planner, ADeterministicCallUsesShippedConstants) {
  const Tiers tiers = Tiers::flat(8);
  CostModel slow_to_start;
  slow_to_start.node.latency_seconds = 1e-3;
  Config config;
  Call call;
  call.count = 1 << 20;
  const auto name = [&] {
    return choose(question_of(call, {8, &config, 1, &tiers, &slow_to_start, &tiers}), tiers, slow_to_start)
        .value()
        .algorithm->name;
  };
  const std::string_view shipped = chosen(Collective::all_reduce, call.count * sizeof(float), tiers);
  ASSERT_NE(name(), shipped) << "a hop of a millisecond decides otherwise";
  call.deterministic = true;
  EXPECT_EQ(name(), shipped);
  call.deterministic = false;
  config.deterministic = true;
  EXPECT_EQ(name(), shipped);
}

TEST(Planner, SlowTiersAreCrossedOnce) {
  const Tiers tiers = made_up_tiers(32, 4, 1).value();
  EXPECT_EQ(tiers.widest(), TierKind::site);
  EXPECT_EQ(chosen(Collective::all_reduce, 64 << 20, tiers), "hierarchical");
  EXPECT_EQ(chosen(Collective::all_reduce, 64 << 20, made_up_tiers(32, 4, 2).value()), "hierarchical");
}

// Small blocks: one message to the other site instead of 32. Large ones: each block is passed on by no other rank.
TEST(Planner, SmallBlocksForAFarSiteTravelTogether) {
  const Tiers tiers = made_up_tiers(64, 8, 2).value();
  EXPECT_EQ(chosen(Collective::all_to_all, 8, tiers), "hierarchical");
  EXPECT_EQ(chosen(Collective::all_to_all, 1 << 10, tiers), "hierarchical");
  EXPECT_EQ(chosen(Collective::all_to_all, 4 << 20, tiers), "direct");
  EXPECT_EQ(chosen(Collective::all_to_all, 8, Tiers::flat(8)), "direct") << "there is no border";
}

TEST(Planner, ASumBetweenSitesIsSharedByTheRatesThatTheyState) {
  Tiers tiers = made_up_tiers(3, 3, 3).value();
  EXPECT_NE(chosen(Collective::all_reduce, 100'000'000, tiers), "hierarchical") << "there is one tier";
  tiers.take_rates({{62e6, 62e6}, {31e6, 31e6}, {125e6, 125e6}});  // the slowest is an inner rank of a tree
  EXPECT_EQ(chosen(Collective::all_reduce, 100'000'000, tiers), "hierarchical");
  Question question;
  question.ranks = 3;
  question.bytes = 100'000'000;
  const Choice choice = choose(question, tiers, {}).value();
  for (const Candidate& candidate : choice.candidates) {
    if (candidate.algorithm != choice.algorithm) continue;
    EXPECT_NEAR(candidate.estimate.seconds, 100e6 / 31e6, 0.2) << "the slowest site sends its own and receives the sum";
  }
}

TEST(Planner, EveryCollectiveHasAChoiceAndEveryAlgorithmAForm) {
  for (int value = 0; value < kCollectiveCount; ++value)
    for (const int ranks : {1, 2, 3, 8}) {
      Question question;
      question.collective = static_cast<Collective>(value);
      question.ranks = ranks;
      question.bytes = 1 << 20;
      const Result<Choice> choice = choose(question, Tiers::flat(ranks), {});
      ASSERT_TRUE(choice.ok()) << choice.status().text();
      for (const Candidate& candidate : choice.value().candidates)
        EXPECT_TRUE(!candidate.refused.empty() || std::isfinite(candidate.estimate.seconds)) << candidate.algorithm->name;
    }
}

// Checks rank 0's program, with and without folding chains of sums into one step.
void expect_steps_that_fit(const Algorithm& algorithm, Shape shape, const Tiers& tiers) {
  shape.pieces = algorithm.pieces(shape, tiers);
  const Program plain = build_program(algorithm, shape, tiers, 0, InPlace::no);
  for (const LoweringRules rules : {LoweringRules{LoweringRules::Chains::keep}, LoweringRules{LoweringRules::Chains::fold}})
    for (const Step& step : lower(plain, shape, InPlace::no, rules).steps) {
      ASSERT_LE(step.source_count, kMostSources) << algorithm.name << " " << name_of(shape.collective) << ", " << shape.ranks;
      ASSERT_LE(step.target_count, kMostTargets) << algorithm.name << " " << name_of(shape.collective) << ", " << shape.ranks;
    }
}

TEST(Planner, NoAlgorithmWithTooLargeStepsIsOffered) {
  for (int value = 0; value < kCollectiveCount; ++value)
    for (const int ranks : {64, 65, 100, 1000})
      for (const int nodes : {1, ranks % 5 == 0 ? 5 : 4}) {
        const Tiers tiers = made_up_tiers(ranks, nodes, 1).value();
        Question question;
        question.collective = static_cast<Collective>(value);
        question.ranks = ranks;
        question.bytes = ranks % 2 == 0 ? 8U : 1U << 20;
        const Result<Choice> choice = choose(question, tiers, {});
        ASSERT_TRUE(choice.ok()) << choice.status().text();
        for (const Candidate& candidate : choice.value().candidates)
          if (candidate.refused.empty())
            expect_steps_that_fit(*candidate.algorithm, {question.collective, ranks, 0, 1, Finish::none}, tiers);
      }
}

// A busy machine measures low memory and link speed; a codec still pays only on slow links.
TEST(Planner, ABusyMachineDoesNotEncodeWithinANode) {
  CostModel busy;
  busy.source = CostSource::measured;
  busy.node.bytes_per_second /= 20;
  Question question;
  question.ranks = 4;
  question.bytes = 64 << 20;
  const auto codec_on = [&](const Tiers& tiers, const CostModel& costs, Codec codec) {
    question.codec = plan_number(codec);
    question.codec_tiers = 0xff;
    return choose(question, tiers, costs).value().codec;
  };
  const Tiers hosts = Tiers::of({{0, 0}, {1, 0}, {2, 0}, {3, 0}});
  for (int value = 0; value < kCodecCount; ++value) {
    const auto codec = static_cast<Codec>(value);
    EXPECT_EQ(codec_on(Tiers::flat(4), busy, codec), 0) << value;
    EXPECT_EQ(codec_on(Tiers::flat(4), CostModel(), codec), 0) << value;
    CostModel slow_link = busy;
    slow_link.site.bytes_per_second = 25e6;
    EXPECT_EQ(codec_on(hosts, slow_link, codec), plan_number(codec)) << value;
  }
}

Cut cut_of(std::uint64_t bytes, const Tiers& tiers, const CostModel& costs, std::uint8_t codec = 0) {
  Question question;
  question.ranks = tiers.ranks();
  question.bytes = bytes;
  question.pin = "two_shot";
  question.codec = codec;
  question.codec_tiers = codec == 0 ? 0 : 0xff;
  return choose(question, tiers, costs).value().cut;
}

TEST(Planner, ALongLinkRunsInTheReadinessOrderWithSlicesOfItsFlow) {
  const Tiers sites = made_up_tiers(4, 4, 4).value();
  CostModel costs;
  costs.world = {30e-3, 1e9};
  const Cut cut = cut_of(256 << 20, sites, costs);
  EXPECT_EQ(cut.order, StepOrder::readiness);
  EXPECT_EQ(cut.slice_bytes, 3'747'840U) << "a sixteenth of 60 MB, in whole pages";
  EXPECT_EQ(cut.window_bytes, 120'000'000U);
  EXPECT_EQ(cut_of(64 << 20, sites, costs).slice_bytes, 2U << 20) << "a chunk of 16 MiB has eight slices";
  EXPECT_EQ(cut_of(1 << 20, sites, costs).slice_bytes, 64U << 10) << "or fewer";
  EXPECT_EQ(cut_of(64 << 10, sites, costs).slice_bytes, 16U << 10) << "a chunk that is shorter than a slice stays whole";
  EXPECT_EQ(cut_of(64 << 20, Tiers::flat(4), costs).order, StepOrder::skewed);
}

constexpr double kNoCliff = 1.3;
constexpr double kFewerMessages = 0.9;

// Two slots of each message that a rank sends stay in its cache: an all_reduce of 4 ranks sends 4, of 2 ranks 2.
TEST(Planner, SlicesWithinANodeFollowFromTheCache) {
  CostModel costs;
  const auto slice_of = [&](int ranks, double cached_bytes) {
    costs.node.cached_bytes = cached_bytes;
    return cut_of(64 << 20, Tiers::flat(ranks), costs).slice_bytes;
  };
  EXPECT_EQ(slice_of(4, 1 << 20), 128U << 10);
  EXPECT_EQ(slice_of(2, 1 << 20), 256U << 10);
  EXPECT_EQ(slice_of(2, 512 << 10), 128U << 10);
  EXPECT_EQ(slice_of(2, 4 << 20), 1U << 20);
  EXPECT_EQ(slice_of(2, 64 << 20), 1U << 20) << "no slice is longer";
  EXPECT_EQ(slice_of(16, 256 << 10), 64U << 10) << "or shorter";
  EXPECT_EQ(slice_of(4, 0), 256U << 10) << "the cache is not known";
  costs.node.cached_bytes = 1 << 20;
  EXPECT_EQ(cut_of((1 << 20) + 2, Tiers::flat(4), costs).slice_bytes, 128U << 10) << "chunks that are not equal";
}

class OnMachines : public ::testing::TestWithParam<TierCost> {};

// The time of what is chosen grows with the size, and no size is much longer than one that is 5 % shorter. The estimates of two
// algorithms meet where the choice changes. Where slices become longer, fewer of them overlap, and there are fewer messages,
// which may save up to a tenth on a machine whose messages are dear.
TEST_P(OnMachines, TimeWithinANodeHasNoCliff) {
  CostModel costs;
  costs.source = CostSource::measured;
  costs.node = GetParam();
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                      Collective::broadcast, Collective::reduce, Collective::all_to_all})
    for (const int ranks : {2, 4, 8})
      for (const double crowding : {1, 2}) {
        double before = 0;
        std::uint64_t slice = 0;
        for (double bytes = 64; bytes < 256 << 20; bytes *= 1.05) {
          Question question;
          question.collective = collective;
          question.ranks = ranks;
          question.crowding = crowding;
          question.bytes = static_cast<std::uint64_t>(bytes) / 4 * 4;
          const Choice choice = choose(question, Tiers::flat(ranks), costs).value();
          double seconds = 0;
          for (const Candidate& candidate : choice.candidates)
            if (candidate.algorithm == choice.algorithm) seconds = candidate.estimate.seconds;
          SCOPED_TRACE(std::string(name_of(collective)) + " of " + std::to_string(question.bytes) + " bytes, " +
                       std::to_string(ranks) + " ranks: " + std::string(choice.algorithm->name));
          const bool has_fewer_messages = choice.cut.slice_bytes > slice;
          EXPECT_GE(seconds, has_fewer_messages ? kFewerMessages * before : before);
          EXPECT_LE(seconds, before == 0 ? 1 : kNoCliff * before);
          before = seconds;
          slice = choice.cut.slice_bytes;
        }
      }
}

// Two that were measured, and machines with slower and faster hops, copies and caches.
INSTANTIATE_TEST_SUITE_P(Planner, OnMachines,
                         ::testing::Values(TierCost{0.31e-6, 61e9, 0.05e-6, 250e9, 1 << 20},
                                           TierCost{0.448e-6, 54.5e9, 0.208e-6, 215e9, 1 << 20},
                                           TierCost{1.5e-6, 30e9, 0.1e-6, 100e9, 512 << 10},
                                           TierCost{0.35e-6, 8e9, 0.1e-6, 50e9, 256 << 10},
                                           TierCost{0.2e-6, 120e9, 0.02e-6, 500e9, 4 << 20}));

// Both were measured on a machine of two cores: 0.31 us and 61 GB/s between them, 250 GB/s within 1 MiB.
TEST(Planner, ASecondLookAtACachedBufferIsCheaperThanAHop) {
  CostModel costs;
  costs.source = CostSource::measured;
  costs.node = {0.31e-6, 61e9, 0.05e-6, 250e9, 1 << 20};
  const auto name_of_choice = [&](std::uint64_t bytes) {
    Question question;
    question.ranks = 2;
    question.bytes = bytes;
    return choose(question, Tiers::flat(2), costs).value().algorithm->name;
  };
  EXPECT_EQ(name_of_choice(64 << 10), "one_shot");
  EXPECT_EQ(name_of_choice(512 << 10), "two_shot");
  costs.node.cached_bytes_per_second = 0;
  EXPECT_EQ(name_of_choice(64 << 10), "two_shot") << "passes are not told apart";
}

// While a slice of each of them crosses the link, nothing arrives.
TEST(Planner, RanksThatShareALongLinkDivideItsSlice) {
  CostModel costs;
  costs.world = {30e-3, 1e9};
  Question question;
  question.bytes = 512 << 20;
  question.pin = "hierarchical";
  const auto slice_of_sites = [&](int ranks) {
    question.ranks = ranks;
    return choose(question, made_up_tiers(ranks, 4, 2).value(), costs).value().cut.slice_bytes;
  };
  EXPECT_EQ(slice_of_sites(4), 1'871'872U) << "two hosts of one rank in each site: half of 3.75 MB, in whole pages";
  EXPECT_EQ(slice_of_sites(16), 466'944U);
  EXPECT_EQ(slice_of_sites(256), 64U << 10) << "no slice is shorter";
}

TEST(Planner, CodedSlicesOfALongLinkAreCountedOnTheWire) {
  const Tiers sites = made_up_tiers(4, 4, 4).value();
  CostModel costs;
  costs.world = {30e-3, 0.1e9};
  const std::uint64_t exact = cut_of(256 << 20, sites, costs).slice_bytes;
  const std::uint64_t coded = cut_of(256 << 20, sites, costs, plan_number(Codec::bf16)).slice_bytes;
  EXPECT_NEAR(static_cast<double>(coded) / static_cast<double>(exact), 2, 0.05);
}

TEST(Planner, APinIsUsedIfItIsPossible) {
  Question question;
  question.ranks = 4;
  question.bytes = 8;
  question.pin = "ring";
  EXPECT_EQ(choose(question, Tiers::flat(4), {}).value().algorithm->name, "ring");
  question.pin = "hierarchical";  // refused: there is one tier
  EXPECT_EQ(choose(question, Tiers::flat(4), {}).value().algorithm->name, "one_shot");
}

}  // namespace
}  // namespace seto
