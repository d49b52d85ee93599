#include "src/core/choice/planner.h"

#include <gtest/gtest.h>

#include <cmath>

#include "src/codec/codec.h"
#include "src/core/explain.h"
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

TEST(Planner, LatencyDecidesSmallAndBytesDecideLarge) {
  const Tiers tiers = Tiers::flat(8);
  EXPECT_EQ(chosen(Collective::all_reduce, 8, tiers), "one_shot");
  EXPECT_EQ(chosen(Collective::all_reduce, 64 << 20, tiers), "two_shot");
}

TEST(Planner, ConstantsMoveTheBorder) {
  const Tiers tiers = Tiers::flat(8);
  CostModel slow_to_start;
  slow_to_start.node.latency_seconds = 1e-3;
  CostModel slow_to_move;
  slow_to_move.node.bytes_per_second = 1e6;
  EXPECT_EQ(chosen(Collective::all_reduce, 64 << 10, tiers, slow_to_start), "one_shot");
  EXPECT_EQ(chosen(Collective::all_reduce, 64 << 10, tiers, slow_to_move), "two_shot");
}

TEST(Planner, ADeterministicCallGoesByShippedConstants) {
  const Tiers tiers = Tiers::flat(8);
  CostModel slow_to_start;
  slow_to_start.node.latency_seconds = 1e-3;
  Config config;
  Call call;
  call.count = 1 << 20;
  const auto name = [&] {
    return choose(question_of(call, {8, &config, 1, &tiers}), tiers, slow_to_start).value().algorithm->name;
  };
  const std::string_view shipped = chosen(Collective::all_reduce, call.count * sizeof(float), tiers);
  ASSERT_NE(name(), shipped) << "a hop of a millisecond decides otherwise";
  call.deterministic = true;
  EXPECT_EQ(name(), shipped);
  call.deterministic = false;
  config.deterministic = true;
  EXPECT_EQ(name(), shipped);
}

TEST(Planner, TiersAreWorthCrossingOnce) {
  const Tiers tiers = made_up_tiers(32, 4, 1).value();
  EXPECT_EQ(tiers.widest(), TierKind::site);
  EXPECT_EQ(chosen(Collective::all_reduce, 64 << 20, tiers), "hierarchical");
  EXPECT_EQ(chosen(Collective::all_reduce, 64 << 20, made_up_tiers(32, 4, 2).value()), "hierarchical");
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
        EXPECT_TRUE(!candidate.refused.empty() || std::isfinite(candidate.seconds)) << candidate.algorithm->name;
    }
}

// What rank 0 runs, whether chains of sums are folded into one step or not.
void expect_steps_that_fit(const Algorithm& algorithm, Shape shape, const Tiers& tiers) {
  shape.pieces = algorithm.pieces(shape);
  const Program plain = build_program(algorithm, shape, tiers, 0, InPlace::no);
  for (const LoweringRules rules : {LoweringRules{LoweringRules::Chains::keep}, LoweringRules{LoweringRules::Chains::fold}})
    for (const Step& step : lower(plain, shape, InPlace::no, rules).steps) {
      ASSERT_LE(step.source_count, kMostSources) << algorithm.name << " " << name_of(shape.collective) << ", " << shape.ranks;
      ASSERT_LE(step.target_count, kMostTargets) << algorithm.name << " " << name_of(shape.collective) << ", " << shape.ranks;
    }
}

TEST(Planner, NothingIsOnOfferWhoseStepsAreBeyondTheEngine) {
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

TEST(Planner, SaysHowManyPartsAreTooMany) {
  Question question;
  question.ranks = 65;
  question.bytes = 8;
  const std::string text = explain(question, Tiers::flat(65), {}, ReportFormat::text).value();
  EXPECT_NE(text.find("adds 65 parts in one step, the engine at most 64"), std::string::npos) << text;
  question.ranks = 64;
  EXPECT_EQ(explain(question, Tiers::flat(64), {}, ReportFormat::text).value().find("parts in one step"), std::string::npos);
}

// What the busiest moment measures, of memory and of links: a codec gains on slow links alone.
TEST(Planner, ABusyMachineIsNoReasonToEncodeWithinANode) {
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

TEST(Planner, APinIsKeptWhereItIsPossible) {
  Question question;
  question.ranks = 4;
  question.bytes = 8;
  question.pin = "ring";
  EXPECT_EQ(choose(question, Tiers::flat(4), {}).value().algorithm->name, "ring");
  question.pin = "hierarchical";  // there is one tier
  EXPECT_EQ(choose(question, Tiers::flat(4), {}).value().algorithm->name, "one_shot");
}

}  // namespace
}  // namespace seto
