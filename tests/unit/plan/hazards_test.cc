// Which earlier steps a step must wait for, against a plain record of who last wrote and who has read each place.

#include "src/plan/hazards.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "src/plan/scratch.h"
#include "src/plan/step_order.h"
#include "tests/support/seed.h"

namespace seto {
namespace {

Shape all_reduce(std::uint32_t pieces) {
  Shape shape;
  shape.ranks = 2;
  shape.pieces = pieces;
  return shape;
}

using Needed = std::vector<Dependency>;

class Hazards : public ::testing::Test {
 protected:
  Needed read(std::uint32_t index, HazardTracker::Access step) {
    tracker_.read(Space::scratch, index, 1);
    return tracker_.take(step);
  }
  Needed write(std::uint32_t index, HazardTracker::Access step) {
    tracker_.write(Space::scratch, index, 1);
    return tracker_.take(step);
  }

  HazardTracker tracker_{all_reduce(4), 0, InPlace::no};
};

TEST_F(Hazards, AReaderWaitsForTheWriter) {
  EXPECT_EQ(write(0, {1, 4}), Needed{});
  EXPECT_EQ(read(0, {2, 0}), (Needed{{1, 5}})) << "lane 1 has completed its steps 0 to 4";
}

TEST_F(Hazards, AWriterWaitsForTheReadersAndTheWriterBefore) {
  write(0, {1, 0});
  read(0, {2, 3});
  read(0, {3, 1});
  EXPECT_EQ(write(0, {4, 0}), (Needed{{1, 1}, {2, 4}, {3, 2}}));
  EXPECT_EQ(read(0, {5, 0}), (Needed{{4, 1}})) << "what was before the last write matters no more";
}

TEST_F(Hazards, ReadersDoNotWaitForEachOther) {
  write(0, {1, 0});
  EXPECT_EQ(read(0, {2, 0}), (Needed{{1, 1}}));
  EXPECT_EQ(read(0, {3, 0}), (Needed{{1, 1}}));
}

TEST_F(Hazards, StepsOfOneLaneRunInOrderAnyway) {
  write(0, {1, 0});
  EXPECT_EQ(read(0, {1, 1}), Needed{});
  EXPECT_EQ(write(0, {1, 2}), Needed{});
}

TEST_F(Hazards, OfALaneTheLatestStepCounts) {
  write(0, {1, 0});
  write(1, {1, 7});
  tracker_.read(Space::scratch, 0, 2);
  EXPECT_EQ(tracker_.take({2, 0}), (Needed{{1, 8}}));
}

TEST_F(Hazards, ChannelsAreNoPlaces) {
  tracker_.write(Space::channel, 0, 1);
  EXPECT_EQ(tracker_.take({1, 0}), Needed{});
  tracker_.read(Space::channel, 0, 1);
  EXPECT_EQ(tracker_.take({2, 0}), Needed{});
}

TEST_F(Hazards, EqualIndicesOfTwoSpacesAreTwoPlaces) {
  tracker_.write(Space::scratch, 1, 1);
  (void)tracker_.take({1, 0});
  tracker_.write(Space::output, 1, 1);
  EXPECT_EQ(tracker_.take({2, 0}), Needed{});
}

// In place, the input is overwritten by the output: a step that still reads the input must come first.
TEST(HazardsInPlace, InputAndOutputOfAChunkAreOnePlace) {
  for (const InPlace in_place : {InPlace::no, InPlace::yes}) {
    HazardTracker tracker(all_reduce(4), 0, in_place);
    tracker.read(Space::input, 2, 1);
    (void)tracker.take({1, 0});
    tracker.write(Space::output, 2, 1);
    EXPECT_EQ(tracker.take({2, 0}), in_place == InPlace::yes ? (Needed{{1, 1}}) : Needed{});
    tracker.write(Space::output, 3, 1);
    EXPECT_EQ(tracker.take({3, 0}), Needed{}) << "another chunk";
  }
}

TEST(PlaceTable, NumbersPlacesDenselyInTheOrderOfTheirFirstUse) {
  PlaceTable table(all_reduce(8), 0, InPlace::yes);
  EXPECT_EQ(table.id(Space::scratch, 100), 0U);
  EXPECT_EQ(table.id(Space::output, 3), 1U);
  EXPECT_EQ(table.id(Space::input, 3), 1U) << "in place";
  EXPECT_EQ(table.id(Space::scratch, 3), 2U);
  EXPECT_EQ(table.id(Space::scratch, 100), 0U);
  EXPECT_EQ(table.size(), 3U);
}

// Random programs: a step waits for exactly the lanes whose accesses conflict with its own, up to the last conflicting step.
TEST(HazardHistories, GiveTheLastConflictOfEachLane) {
  std::mt19937_64 random(testing::chosen_seed());
  struct Past {
    HazardTracker::Access step;
    std::uint32_t place;
    bool writes;
  };
  for (int program = 0; program < 200; ++program) {
    HazardTracker tracker(all_reduce(4), 0, InPlace::no);
    std::vector<Past> past;  // of each place: accesses since the last write, and that write
    std::vector<std::uint32_t> positions(4);
    for (int number = 0; number < 30; ++number) {
      const auto lane = static_cast<std::uint32_t>(random() % 4);
      const HazardTracker::Access step{lane, positions[lane]++};
      const auto source = static_cast<std::uint32_t>(random() % 5);
      const auto target = static_cast<std::uint32_t>((source + 1 + random() % 4) % 5);
      tracker.read(Space::scratch, source, 1);
      tracker.write(Space::scratch, target, 1);
      std::map<std::uint32_t, std::uint32_t> expected;
      for (const Past& one : past) {
        const bool conflicts = one.place == target || (one.place == source && one.writes);
        if (conflicts && one.step.lane != lane)
          expected[one.step.lane] = std::max(expected[one.step.lane], one.step.position + 1);
      }
      Needed wanted;
      for (const auto& [of_lane, steps] : expected) wanted.push_back({of_lane, steps});
      ASSERT_EQ(tracker.take(step), wanted);
      std::erase_if(past, [&](const Past& one) { return one.place == target; });
      past.push_back({step, source, false});
      past.push_back({step, target, true});
    }
  }
}

// Two steps that copy scratch chunks: 7 -> 3 and 3 -> 9 of 12.
Program two_copies() {
  Program program;
  program.scratch_chunks = 12;
  for (const auto& [from, to] : {std::pair<std::uint32_t, std::uint32_t>{7, 3}, {3, 9}}) {
    Step step;
    step.first_operand = static_cast<std::uint32_t>(program.operands.size());
    step.source_count = step.target_count = 1;
    program.operands.push_back({Space::scratch, false, from});
    program.operands.push_back({Space::scratch, false, to});
    program.steps.push_back(step);
  }
  return program;
}

TEST(CompactScratch, RenumbersWhatIsUsedInItsOrder) {
  Program program = two_copies();
  compact_scratch(program);
  EXPECT_EQ(program.scratch_chunks, 3U);
  std::vector<std::uint32_t> indices;
  for (const Operand& operand : program.operands) indices.push_back(operand.index);
  EXPECT_EQ(indices, (std::vector<std::uint32_t>{1, 0, 0, 2}));
}

TEST(CompactScratch, KeepsARangeTogether) {
  Program program = two_copies();
  program.steps[0].count = 2;  // 7 and 8 -> 3 and 4
  compact_scratch(program);
  EXPECT_EQ(program.scratch_chunks, 5U);
  EXPECT_EQ(program.operands[0].index, 2U);
  EXPECT_EQ(program.operands[1].index, 0U);
  EXPECT_EQ(program.operands[3].index, 4U);
}

TEST(CompactScratch, LeavesBuffersAlone) {
  Program program = two_copies();
  program.operands[0] = {Space::input, false, 11};
  program.operands[3] = {Space::output, false, 10};
  compact_scratch(program);
  EXPECT_EQ(program.scratch_chunks, 1U);
  EXPECT_EQ(program.operands[0].index, 11U);
  EXPECT_EQ(program.operands[3].index, 10U);
}

Program lanes_of_stages(const std::vector<std::uint16_t>& stages) {
  Program program;
  program.rank = 3;
  for (const std::uint16_t stage : stages) {
    program.lanes.push_back({static_cast<std::uint32_t>(program.steps.size()), 1});
    program.steps.emplace_back().stage = stage;
  }
  return program;
}

// Every slice of every lane runs once, a lane runs its slices in order, and a stage runs a slice one round after the stage
// before.
TEST(SkewedOrder, RunsEverySliceOfEveryLaneOnceAndStageAfterStage) {
  std::mt19937_64 random(testing::chosen_seed());
  for (int example = 0; example < 100; ++example) {
    std::vector<std::uint16_t> stages(1 + random() % 12);
    for (std::uint16_t& stage : stages) stage = static_cast<std::uint16_t>(random() % 6);
    std::sort(stages.begin(), stages.end());
    const auto order = SkewedOrder::of(lanes_of_stages(stages));
    ASSERT_TRUE(order.ok()) << order.status().text();
    const std::uint64_t slices = 1 + random() % 7;
    std::vector<std::uint64_t> run(stages.size());
    for (std::uint64_t round = 0; round < order.value().rounds(slices); ++round) {
      for (std::size_t lane = 0; lane < stages.size(); ++lane)
        EXPECT_EQ(std::min(slices, SkewedOrder::slices_before(round, stages[lane])), run[lane]);
      const auto [first, end] = order.value().lanes_of(round, slices);
      for (std::uint32_t lane = first; lane < end; ++lane) {
        ASSERT_EQ(SkewedOrder::slice_of(round, stages[lane]), run[lane]);
        ++run[lane];
      }
    }
    EXPECT_EQ(run, std::vector<std::uint64_t>(stages.size(), slices));
  }
}

TEST(SkewedOrder, RefusesLanesOutOfOrderAndLanesOfSeveralSteps) {
  EXPECT_EQ(SkewedOrder::of(lanes_of_stages({0, 2, 1})).status().text(), "rank 3: lane 2 is not in the order of the stages");
  Program two = lanes_of_stages({0, 1});
  two.lanes[1].step_count = 2;
  EXPECT_EQ(SkewedOrder::of(two).status().text(), "rank 3: lane 1 has 2 steps, a skewed order takes one");
}

}  // namespace
}  // namespace seto
