// Plans that the verifier must reject and once accepted, or that no mutation of the present algorithms reaches.

#include "src/plan/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algorithms/algorithm.h"
#include "src/engine/lowering.h"
#include "tests/support/open_plan.h"

namespace seto {
namespace {

using support::closed;
using support::opened;
using support::OpenProgram;
using support::OpenStep;
using testing::HasSubstr;

Plan plan_of(const char* name, Shape shape) {
  const Algorithm* algorithm = find_algorithm(name, shape.collective);
  shape.pieces = algorithm->pieces(shape, Tiers::flat(shape.ranks));
  return build_plan(*algorithm, shape, Tiers::flat(shape.ranks), {});
}

template <class Edit>
void edit(Plan& plan, Rank rank, Edit&& change) {
  OpenProgram program = opened(plan.programs[static_cast<std::size_t>(rank)]);
  change(program);
  plan.programs[static_cast<std::size_t>(rank)] = closed(program);
}

OpenStep& first(OpenProgram& program, Verb verb) {
  for (auto& lane : program.lanes)
    for (OpenStep& step : lane)
      if (step.step.verb == verb) return step;
  ADD_FAILURE() << "no " << name_of(verb);
  return program.lanes.front().front();
}

std::string refusal(const Plan& plan, const VerifyRequest& request = {}) {
  const Result<Outcome> outcome = verify(plan, request);
  return outcome.ok() ? "" : std::string(outcome.status().text());
}

TEST(Verifier, AcceptsThePlanThatTheOtherTestsDamage) {
  EXPECT_EQ(refusal(plan_of("ring", {Collective::reduce_scatter, 3, 0, 1, Finish::scale_contributions})), "");
  EXPECT_EQ(refusal(plan_of("direct", {Collective::reduce, 3, 0, 1, Finish::divide_result})), "");
  EXPECT_EQ(refusal(plan_of("direct", {Collective::broadcast, 3, 0, 1, Finish::none})), "");
}

// In a step on scratch alone, only the length of the chunk shows which chunk it uses.
TEST(Verifier, RefusesAStepThatNamesAnotherChunkThanItsScratchHolds) {
  Plan plan = plan_of("ring", {Collective::reduce_scatter, 3, 0, 1, Finish::scale_contributions});
  edit(plan, 0, [](OpenProgram& program) {
    OpenStep& step = first(program, Verb::reduce);
    ASSERT_EQ(step.targets.front().space, Space::scratch);
    step.step.chunk = (step.step.chunk + 1) % 3;
  });
  EXPECT_THAT(refusal(plan), HasSubstr("reads chunk"));
}

TEST(Verifier, RefusesAPartOfASumThatIsFinishedBeforeTheRest) {
  Plan plan = plan_of("direct", {Collective::reduce, 2, 0, 1, Finish::divide_result});
  edit(plan, 0, [](OpenProgram& program) { first(program, Verb::finish).step.verb = Verb::copy; });
  edit(plan, 1, [](OpenProgram& program) {
    OpenStep& send = first(program, Verb::send);
    send.step.verb = Verb::copy;
    send.step.finishes = true;
  });
  EXPECT_THAT(refusal(plan), HasSubstr("not finished exactly once"));
}

TEST(Verifier, RefusesTwoChannelsOfOneAddressOnOneRank) {
  Plan plan = plan_of("direct", {Collective::broadcast, 3, 0, 1, Finish::none});
  edit(plan, 1, [](OpenProgram& program) {
    OpenStep again = first(program, Verb::receive);
    again.sources.front().index = 1;
    program.channels.push_back(program.channels.front());
    program.lanes.push_back({again});
  });
  edit(plan, 2, [](OpenProgram& program) { program = {2, 0, 0, {}, {}}; });
  EXPECT_THAT(refusal(plan), HasSubstr("same address"));
}

TEST(Verifier, RefusesAStepWithOverlappingOperands) {
  Plan plan{"scratch", {Collective::broadcast, 1, 0, 3, Finish::none}, {Program{}}};
  OpenProgram program{0, 4, 0, {}, {}};
  const auto copy = [](std::uint32_t count, Operand from, Operand to) {
    OpenStep step;
    step.step.count = count;
    step.sources = {from};
    step.targets = {to};
    return step;
  };
  program.lanes = {{copy(3, {Space::input, false, 0}, {Space::scratch, false, 0}),
                    copy(3, {Space::scratch, false, 0}, {Space::scratch, false, 1}),
                    copy(3, {Space::scratch, false, 1}, {Space::output, false, 0})}};
  plan.programs[0] = closed(program);
  EXPECT_THAT(refusal(plan), HasSubstr("has a target that overlaps"));
}

TEST(Verifier, RefusesCodingInAPlanWithoutACodec) {
  Plan plan = plan_of("direct", {Collective::broadcast, 2, 0, 1, Finish::none});
  for (const Rank rank : {0, 1}) edit(plan, rank, [](OpenProgram& program) { program.channels.front().channel.coded = true; });
  EXPECT_THAT(refusal(plan), HasSubstr("has a coded channel, but the plan has no codec"));
  plan = plan_of("direct", {Collective::broadcast, 2, 0, 1, Finish::none});
  edit(plan, 0, [](OpenProgram& program) { first(program, Verb::copy).step.verb = Verb::round; });
  EXPECT_THAT(refusal(plan), HasSubstr("rounds, but the plan has no codec"));
}

TEST(Verifier, RefusesAResultThatItsOwnerDoesNotRound) {
  const Shape shape{Collective::all_reduce, 2, 0, 2, Finish::none, 1, 1};
  Plan plan = plan_of("two_shot", shape);
  EXPECT_EQ(refusal(plan), "");
  edit(plan, 0, [](OpenProgram& program) { first(program, Verb::round).step.verb = Verb::copy; });
  EXPECT_THAT(refusal(plan), HasSubstr("differs in its bits"));
}

TEST(Verifier, RefusesAChunkThatWrapsAround) {
  Plan plan = plan_of("direct", {Collective::broadcast, 2, 0, 1, Finish::none});
  edit(plan, 0, [](OpenProgram& program) { first(program, Verb::copy).step.chunk = 0xffffffff; });
  EXPECT_THAT(refusal(plan), HasSubstr("chunks that do not exist"));
}

TEST(Verifier, RefusesLanesOfSeveralStepsOrNoneInTheSkewedOrder) {
  const Shape shape{Collective::broadcast, 2, 0, 1, Finish::none};
  Plan plan = plan_of("direct", shape);
  for (Program& program : plan.programs) program = lower(program, shape, InPlace::no, {});
  VerifyRequest request;
  request.order = StepOrder::skewed;
  EXPECT_EQ(refusal(plan, request), "");
  edit(plan, 1, [](OpenProgram& program) { program.lanes.emplace_back(); });
  EXPECT_THAT(refusal(plan, request), HasSubstr("a skewed order takes one"));
}

}  // namespace
}  // namespace seto
