#include "src/plan/text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "algorithms/algorithm.h"
#include "src/engine/lowering.h"

namespace seto {
namespace {

constexpr std::string_view kHeading = "seto plan 1\nname some plan\nshape all_reduce ranks 2 root 0 pieces 2 finish none\n";

Plan plan_of(const Algorithm& algorithm, int ranks, InPlace in_place) {
  Shape shape{algorithm.collective, ranks, ranks - 1, 1, Finish::scale_contributions};
  shape.pieces = algorithm.pieces(shape, Tiers::flat(ranks));
  return build_plan(algorithm, shape, Tiers::flat(ranks), std::vector<InPlace>(static_cast<std::size_t>(ranks), in_place));
}

Plan lowered(const Plan& plan, InPlace in_place) {
  Plan result{plan.name, plan.shape, {}};
  for (const Program& program : plan.programs)
    result.programs.push_back(lower(program, plan.shape, in_place, {LoweringRules::Chains::fold}));
  return result;
}

void expect_round_trip(const Plan& plan) {
  const std::string text = to_text(plan);
  const Result<Plan> back = plan_from_text(text);
  ASSERT_TRUE(back.ok()) << back.status().text() << "\n" << text;
  EXPECT_EQ(back.value().name, plan.name);
  EXPECT_EQ(back.value().shape, plan.shape);
  EXPECT_EQ(back.value().programs, plan.programs) << text;
}

TEST(PlanText, ReadsBackEveryAlgorithm) {
  int compared = 0;
  for (const Algorithm& algorithm : algorithms())
    for (const int ranks : {1, 2, 5}) {
      if (!algorithm.refuses({algorithm.collective, ranks, 0, 1, Finish::none}, Tiers::flat(ranks)).empty()) continue;
      SCOPED_TRACE(std::string(algorithm.name) + " " + std::string(name_of(algorithm.collective)) + " " + std::to_string(ranks));
      for (const InPlace in_place : {InPlace::no, InPlace::yes}) {
        if (in_place == InPlace::yes && algorithm.collective == Collective::all_to_all) continue;
        const Plan plan = plan_of(algorithm, ranks, in_place);
        expect_round_trip(plan);
        expect_round_trip(lowered(plan, in_place));
        compared += 2;
      }
    }
  EXPECT_GT(compared, 100);
}

TEST(PlanText, KeepsEveryField) {
  Plan plan;
  plan.name = "all fields";
  plan.shape = {Collective::broadcast, 300, 299, 9, Finish::divide_result, 254, 255};
  Program program;
  program.rank = 299;
  program.scratch_chunks = 7;
  program.fan = 3;
  program.receivers = {1, 2, 298};
  program.channels = {{299, 0, 2, 255, 65535, 4, 5, 65535, true}, {299, 2, 1, 0, 1, 0, 9, 1, false}};
  program.operands = {{Space::scratch, true, 2}, {Space::input, false, 4}, {Space::channel, false, 0}, {Space::output, false, 0}};
  program.dependencies = {{1, 0}, {0, 1}};
  Step step;
  step.verb = Verb::round;
  step.finishes = true;
  step.rounds = true;
  step.stage = 65535;
  step.order = 0xffffffff;
  step.chunk = 4;
  step.count = 5;
  step.source_count = 2;
  step.target_count = 2;
  step.dependency_count = 1;
  Step second;
  second.first_operand = 4;
  second.first_dependency = 1;
  second.dependency_count = 1;
  program.steps = {step, second};
  program.lanes = {{0, 1}, {1, 1}, {2, 0}};
  plan.programs = {program};
  expect_round_trip(plan);
}

TEST(PlanText, IsReadable) {
  constexpr std::string_view kText = R"(seto plan 1
name ring
shape all_reduce ranks 2 root 0 pieces 2 finish scale_contributions

program 0 scratch 1 fan 1
channel 0 from 1 to 0 group 0 port 0 chunks 0+1 stage 0
channel 1 from 0 to 1 group 0 port 0 chunks 1+1 stage 0
channel 2 from 0 to 1 group 0 port 1 chunks 0+1 stage 1
channel 3 from 1 to 0 group 0 port 1 chunks 1+1 stage 1
lane 0
  copy chunks 1+1 stage 0 order 4: scaled input 1 -> channel 1
lane 1
  reduce finishes chunks 0+1 stage 1 order 2: channel 0, scaled input 0 -> output 0, channel 2, scratch 0
lane 2
  copy chunks 1+1 stage 2 order 6: channel 3 -> output 1 after 0:1 1:1
)";
  const Result<Plan> plan = plan_from_text(kText);
  ASSERT_TRUE(plan.ok()) << plan.status().text();
  EXPECT_EQ(to_text(plan.value()), kText);
  const Program& program = plan.value().programs.at(0);
  ASSERT_EQ(program.steps.size(), 3U);
  const Step& reduce = program.steps[1];
  EXPECT_EQ(reduce.verb, Verb::reduce);
  EXPECT_TRUE(reduce.finishes);
  EXPECT_EQ(program.sources(reduce)[1], (Operand{Space::input, true, 0}));
  EXPECT_EQ(program.targets(reduce)[1], (Operand{Space::channel, false, 2}));
  EXPECT_EQ(program.dependencies_of(program.steps[2])[1], (Dependency{1, 1}));
}

TEST(PlanText, SkipsCommentsAndBlankLines) {
  std::string text("# a plan\n\n");
  text.append(kHeading).append("\n  # a comment\n");
  const Result<Plan> plan = plan_from_text(text);
  ASSERT_TRUE(plan.ok()) << plan.status().text();
  EXPECT_EQ(plan.value().name, "some plan");
  EXPECT_TRUE(plan.value().programs.empty());
}

struct Malformed {
  std::string_view body;  // after the heading
  std::string_view complaint;
};

TEST(PlanText, NamesTheWrongLineAndTheExpectedText) {
  const Malformed cases[] = {
      {"lane 0\n", "line 4: expected \"program\", found \"lane 0\""},
      {"program 2 scratch 0 fan 0\n", "line 4: expected a rank as a number up to 1, found \"2 scratch 0 fan 0\""},
      {"program 0 scratch 99999999 fan 0\n", "line 4: expected scratch as a number up to 16777216"},
      {"program 0 scratch 0 fan 0 more\n", "line 4: expected the end of the line, found \"more\""},
      {"program 1 scratch 0 fan 0\nprogram 1 scratch 0 fan 0\n", "line 5: expected programs in the order of ranks"},
      {"program 0 scratch 0 fan 0\nsend\n", "line 5: expected \"channel\" or \"lane\", found \"send\""},
      {"program 0 scratch 0 fan 0\nchannel 1 from\n", "line 5: expected the number of the next channel"},
      {"program 0 scratch 0 fan 0\nchannel 0 from 0 to 7\n", "line 5: expected a rank as a number up to 1, found \"7\""},
      {"program 0 scratch 0 fan 0\nlane 0\nlane 0\n", "line 6: expected the number of the next lane"},
      {"program 0 scratch 0 fan 0\nlane 0\nmove chunks 0+1\n",
       "line 6: expected \"lane\", \"program\" or a verb, found \"move chunks 0+1\""},
      {"program 0 scratch 0 fan 0\nlane 0\ncopy chunks 1+2 stage 0 order 0: input 0 -> output 0\n",
       "line 6: expected chunks below 2"},
      {"program 0 scratch 0 fan 0\nlane 0\ncopy chunks 0+1 stage 65536 order 0\n",
       "line 6: expected stage as a number up to 65535"},
      {"program 0 scratch 0 fan 0\nlane 0\ncopy chunks 0+2 stage 0 order 0: input 1 -> output 0\n",
       "line 6: expected input below 2"},
      {"program 0 scratch 0 fan 0\nlane 0\ncopy chunks 0+1 stage 0 order 0: channel 0 -> output 0\n", "expected channel below 0"},
      {"program 0 scratch 0 fan 0\nlane 0\ncopy chunks 0+1 stage 0 order 0: input 0 output 0\n",
       "line 6: expected \"->\", found \"output 0\""},
      {"program 0 scratch 0 fan 0\nlane 0\ncopy chunks 0+1 stage 0 order 0: input 0 -> output 0 after 1:0\n",
       "program 0 at line 4: expected dependencies on existing steps, found 1:0"},
      {"program 0 scratch 0 fan 0\nlane 0\ncopy chunks 0+1 stage 0 order 99999999999999999999: input 0 -> output 0\n",
       "line 6: expected order as a number up to 4294967295"},
  };
  for (const Malformed& each : cases) {
    const Result<Plan> plan = plan_from_text(std::string(kHeading) + std::string(each.body));
    ASSERT_FALSE(plan.ok()) << each.body;
    EXPECT_EQ(plan.status().code(), Code::invalid_argument);
    EXPECT_NE(plan.status().text().find(each.complaint), std::string_view::npos) << plan.status().text() << "\n" << each.body;
  }
}

TEST(PlanText, RejectsHeadingsOfUnlimitedPlans) {
  for (const std::string_view heading : {
           "",
           "seto plan 2\n",
           "seto plan 1\nshape",
           "seto plan 1\nname x\nshape all_reduce ranks 0 root 0 pieces 1 finish none\n",
           "seto plan 1\nname x\nshape all_reduce ranks 2 root 2 pieces 1 finish none\n",
           "seto plan 1\nname x\nshape all_reduce ranks 2 root 0 pieces 0 finish none\n",
           "seto plan 1\nname x\nshape all_to_all ranks 65536 root 0 pieces 1 finish none\n",
           "seto plan 1\nname x\nshape all_gather ranks 65536 root 0 pieces 65536 finish none\n",
           "seto plan 1\nname x\nshape all_reduce ranks 2 root 0 pieces 16777217 finish none\n",
       })
    EXPECT_FALSE(plan_from_text(heading).ok()) << heading;
}

// Words, digits and lines are changed at random: reading fails with a text, or gives a plan that is read back from its own text.
TEST(PlanText, SurvivesMutations) {
  constexpr unsigned kSeed = 7321;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  const Plan plan = plan_of(*find_algorithm("two_shot", Collective::all_reduce), 3, InPlace::no);
  const std::string texts[] = {to_text(plan), to_text(lowered(plan, InPlace::no))};
  constexpr std::string_view kMessageHeaders("0123456789 \n:+->,ascdeln\0\xff", 26);
  int refused = 0;
  int read = 0;
  for (int round = 0; round < 8000; ++round) {
    std::string text = texts[round % 2];
    for (unsigned change = 0; change <= random() % 3; ++change) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = kMessageHeaders[random() % kMessageHeaders.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        case 2:
          text.insert(at, 1, kMessageHeaders[random() % kMessageHeaders.size()]);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
          break;
      }
    }
    const Result<Plan> mutant = plan_from_text(text);
    if (!mutant.ok()) {
      ++refused;
      ASSERT_NE(mutant.status().text().find("plan text, "), std::string_view::npos);
      continue;
    }
    ++read;
    expect_round_trip(mutant.value());
    if (HasFailure()) return;
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(read, 50);
}

}  // namespace
}  // namespace seto
