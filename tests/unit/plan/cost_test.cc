#include "src/plan/cost.h"

#include <gtest/gtest.h>

namespace seto {
namespace {

TEST(Cost, CountsTheChunksOfAFusedStep) {
  Program program;
  program.receivers = {1, 2, 3, 0};
  program.channels = {{0, 0, 3, 1, 0, 4, 2, 0, 0}, {1, 3, 1, 0, 0, 4, 2, 0, 0}};
  program.operands = {{Space::input, true, 4},
                      {Space::channel, false, 1},
                      {Space::scratch, false, 0},
                      {Space::output, false, 4},
                      {Space::channel, false, 0}};
  Step step;
  step.verb = Verb::reduce;
  step.count = 2;
  step.source_count = 3;
  step.target_count = 2;
  const StepCost expected{
      .read = 4, .written = 2, .received = 2, .sent = 2, .delivered = 6, .folded = 4, .scaled = 2, .coded = 0};
  EXPECT_EQ(cost_of(program, step), expected);

  program.steps = {step, step};
  EXPECT_EQ(cost_of(program).delivered, 12U);
}

TEST(Cost, SeparatesMovingFoldingAndCoding) {
  Program program;
  program.operands = {{Space::input, false, 0}, {Space::output, false, 0}};
  Step step;
  step.source_count = 1;
  step.target_count = 1;
  for (const auto& [verb, scaled, coded] : {std::tuple{Verb::copy, 0U, 0U}, {Verb::scale, 1U, 0U}, {Verb::round, 0U, 2U}}) {
    step.verb = verb;
    const StepCost cost = cost_of(program, step);
    EXPECT_EQ(cost.folded, 0U) << name_of(verb);
    EXPECT_EQ(cost.scaled, scaled) << name_of(verb);
    EXPECT_EQ(cost.coded, coded) << name_of(verb);
    EXPECT_EQ(cost.read, 1U);
    EXPECT_EQ(cost.written, 1U);
  }
}

TEST(Cost, CountsEncodingsAndDecodings) {
  Program program;
  program.channels.resize(3);
  program.channels[0].coded = program.channels[1].coded = true;
  program.operands = {
      {Space::channel, false, 0}, {Space::output, false, 0}, {Space::channel, false, 1}, {Space::channel, false, 2}};
  Step step;  // from channel 0 to a place and two channels
  step.source_count = 1;
  step.target_count = 3;
  EXPECT_EQ(cost_of(program, step).coded, 2U) << "channel 1 gets the received bytes";
  step.finishes = true;
  EXPECT_EQ(cost_of(program, step).coded, 2U) << "one decoding and one encoding of the result";
  step.finishes = false;
  step.verb = Verb::reduce;
  step.source_count = 2;
  step.target_count = 2;
  step.rounds = true;  // from channel 0 and a place to both channels
  EXPECT_EQ(cost_of(program, step).coded, 3U) << "one decoding, one encoding, and one decoding for the places";
}

}  // namespace
}  // namespace seto
