#include "src/engine/lending.h"

#include <gtest/gtest.h>

#include "algorithms/algorithm.h"
#include "src/engine/lowering.h"
#include "src/plan/chunk_map.h"

namespace seto {
namespace {

// Whether step `earlier` is done, for a slice, before step `later` begins.
bool ordered(const Program& program, std::uint32_t earlier, std::uint32_t later) {
  std::vector<std::uint32_t> open = {later};
  for (std::vector<bool> seen(program.steps.size()); !open.empty();) {
    const std::uint32_t step = open.back();
    open.pop_back();
    for (const Dependency& dependency : program.dependencies_of(program.steps[step])) {
      const std::uint32_t before = program.lanes[dependency.lane].first_step;  // lowered: one step a lane
      if (before == earlier) return true;
      if (!seen[before]) open.push_back(before);
      seen[before] = true;
    }
  }
  return false;
}

// Checks the guarantee without the rule that implements it: every step that writes the place does so before the step that sends
// it.
void expect_kept(const Program& program, const Shape& shape, InPlace in_place, std::uint32_t sender, const Operand& place) {
  PlaceTable table(shape, program.rank, in_place);
  const std::uint32_t lent = table.id(place.space, place.index);
  for (std::uint32_t step = 0; step < program.steps.size(); ++step)
    for (const Operand& target : program.targets(program.steps[step]))
      for (std::uint32_t i = 0; target.space != Space::channel && i < program.steps[step].count; ++i)
        if (table.id(target.space, target.index + i) == lent && step != sender) {
          EXPECT_TRUE(ordered(program, step, sender))
              << "rank " << program.rank << ": step " << step << " writes what step " << sender << " lends";
        }
}

struct Count {
  std::uint32_t sends = 0;
  std::uint32_t lent = 0;
};

Count count(const Algorithm& algorithm, int ranks, InPlace in_place) {
  Shape shape{algorithm.collective, ranks, 0, 1, Finish::none};
  shape.pieces = algorithm.pieces(shape, Tiers::flat(ranks));
  Count result;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const Program plain = build_program(algorithm, shape, Tiers::flat(ranks), rank, in_place);
    const Program program = lower(plain, shape, in_place, rules_for(DataType::float32));
    Lending lending(program, shape, in_place);
    for (std::uint32_t step = 0; step < program.steps.size(); ++step) {
      const auto targets = program.targets(program.steps[step]);
      const auto channels =
          std::count_if(targets.begin(), targets.end(), [](const Operand& o) { return o.space == Space::channel; });
      if (channels == 0) continue;
      const std::optional<Operand> place = lending.place_of(program.steps[step]);
      result.sends += static_cast<std::uint32_t>(channels);
      if (!place) continue;
      result.lent += static_cast<std::uint32_t>(channels);
      expect_kept(program, shape, in_place, step, *place);
    }
  }
  return result;
}

TEST(Lending, LentMemoryIsNotWrittenAfterwards) {
  for (const Algorithm& algorithm : algorithms())
    for (int ranks = 2; ranks <= 9; ++ranks)
      for (const InPlace in_place : {InPlace::no, InPlace::yes}) {
        if (!algorithm.refuses({algorithm.collective, ranks, 0, 1, Finish::none}, Tiers::flat(ranks)).empty()) continue;
        SCOPED_TRACE(std::string(algorithm.name) + " " + std::string(name_of(algorithm.collective)) + ", " +
                     std::to_string(ranks) + " ranks");
        (void)count(algorithm, ranks, in_place);
      }
}

TEST(Lending, DirectPlansMoveNothingThroughSlots) {
  const auto share = [](std::string_view name, Collective collective, InPlace in_place) {
    const Count counted = count(*find_algorithm(name, collective), 4, in_place);
    EXPECT_GT(counted.sends, 0U);
    return static_cast<double>(counted.lent) / counted.sends;
  };
  EXPECT_EQ(share("two_shot", Collective::all_reduce, InPlace::no), 1.0);
  EXPECT_EQ(share("direct", Collective::all_gather, InPlace::no), 1.0);
  EXPECT_EQ(share("direct", Collective::all_gather, InPlace::yes), 1.0);
  EXPECT_EQ(share("direct", Collective::broadcast, InPlace::yes), 1.0);
  EXPECT_EQ(share("direct", Collective::reduce_scatter, InPlace::no), 1.0);
  // In place, a rank's contribution is overwritten by the result; the results themselves stay.
  const double in_place = share("two_shot", Collective::all_reduce, InPlace::yes);
  EXPECT_GT(in_place, 0.0);
  EXPECT_LT(in_place, 1.0);
}

}  // namespace
}  // namespace seto
