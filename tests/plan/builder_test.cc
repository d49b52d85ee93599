#include "src/plan/builder.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "algorithms/algorithm.h"
#include "src/plan/chunk_map.h"
#include "src/plan/verify.h"

namespace seto {
namespace {

Shape all_reduce_of(int ranks, std::uint32_t pieces) { return {Collective::all_reduce, ranks, 0, pieces, Finish::none}; }

std::size_t count_of(const Program& program, Verb verb) {
  return static_cast<std::size_t>(
      std::count_if(program.steps.begin(), program.steps.end(), [&](const Step& s) { return s.verb == verb; }));
}

const Step& only(const Program& program, Verb verb) {
  EXPECT_EQ(count_of(program, verb), 1U);
  return *std::find_if(program.steps.begin(), program.steps.end(), [&](const Step& s) { return s.verb == verb; });
}

TEST(Builder, KeepsOnlyStepsOfItsRank) {
  for (Rank rank = 0; rank < 4; ++rank) {
    Builder builder({Collective::broadcast, 4, 0, 1, Finish::none}, rank, InPlace::yes);
    builder.copy(0, 1, {0, 1});
    builder.next_round();
    builder.copy(1, 2, {0, 1});
    builder.next_round();
    builder.copy(2, 3, {0, 1});
    const Program program = std::move(builder).build();
    EXPECT_EQ(program.steps.size(), rank == 0 || rank == 3 ? 1U : 2U);
    EXPECT_EQ(program.channels.size(), program.steps.size());
  }
}

TEST(Builder, NumbersPortsPerSenderAndReceiver) {
  Builder builder({Collective::broadcast, 3, 0, 2, Finish::none}, 0, InPlace::yes);
  builder.copy(0, 1, {0, 1});
  builder.copy(0, 2, {0, 1});
  builder.copy(0, 1, {1, 1});
  const Program program = std::move(builder).build();
  ASSERT_EQ(program.channels.size(), 3U);
  EXPECT_EQ(program.channels[0].port, 0);
  EXPECT_EQ(program.channels[1].port, 0);
  EXPECT_EQ(program.channels[2].port, 1);
  EXPECT_EQ(program.fan, 2U);
  EXPECT_EQ(program.lanes.size(), 2U);  // one for each peer
}

TEST(Builder, MovesNothingIfNothingMust) {
  Builder builder(all_reduce_of(1, 3), 0, InPlace::yes);
  const Group all = Group::all(builder.shape(), 0);
  builder.copy(0, 0, builder.everything());
  builder.exchange(all, builder.everything());
  builder.reduce_all(all, 0, builder.everything());
  builder.multicast(all, 0, builder.everything());
  builder.finish(0, builder.everything());
  EXPECT_TRUE(std::move(builder).build().steps.empty());
}

TEST(Builder, CopiesContributionsThatWereNeverMoved) {
  Builder builder({Collective::all_gather, 2, 0, 2, Finish::none}, 1, InPlace::no);
  const Group all = Group::all(builder.shape(), 1);
  for (const int member : all.from_own()) builder.multicast(all, member, builder.part_of(all[member]));
  const Program program = std::move(builder).build();
  const Step& copy = only(program, Verb::copy);
  EXPECT_EQ(copy.chunk, 2U);
  EXPECT_EQ(copy.count, 2U);  // both pieces in one step
  EXPECT_EQ(program.sources(copy).front(), (Operand{Space::input, false, 0}));
  EXPECT_EQ(program.targets(copy).front(), (Operand{Space::output, false, 2}));
}

TEST(Builder, InPlaceOverwritesOnlyAfterTheLastReader) {
  Builder builder(all_reduce_of(2, 1), 0, InPlace::yes);
  builder.exchange(0, 1, {0, 1});
  const Program program = std::move(builder).build();
  const Step& fold = only(program, Verb::reduce);
  EXPECT_EQ(program.dependencies_of(fold).size(), 2U);  // the message has arrived, and the own part is sent
  Builder apart(all_reduce_of(2, 1), 0, InPlace::no);
  apart.exchange(0, 1, {0, 1});
  const Program two_buffers = std::move(apart).build();
  EXPECT_EQ(two_buffers.dependencies_of(only(two_buffers, Verb::reduce)).size(), 1U);
}

TEST(Builder, ScalesEachContributionOnceAndDividesOnceAtTheEnd) {
  Shape shape = all_reduce_of(3, 1);
  const auto build = [&](Rank rank) {
    Builder builder(shape, rank, InPlace::no);
    const Group all = Group::all(shape, rank);
    builder.reduce_all(all, 0, {0, 1});
    builder.finish(0, {0, 1});
    builder.next_round();
    builder.multicast(all, 0, {0, 1});
    return std::move(builder).build();
  };
  shape.finish = Finish::scale_contributions;
  for (Rank rank = 0; rank < 3; ++rank) EXPECT_EQ(count_of(build(rank), Verb::scale), 1U);
  shape.finish = Finish::divide_result;
  for (Rank rank = 0; rank < 3; ++rank) EXPECT_EQ(count_of(build(rank), Verb::finish), rank == 0 ? 1U : 0U);
  shape.finish = Finish::none;
  EXPECT_EQ(count_of(build(0), Verb::scale) + count_of(build(0), Verb::finish), 0U);
}

TEST(Builder, UsesScratchOnlyIfThereIsNoOtherPlace) {
  Builder builder({Collective::reduce_scatter, 2, 0, 1, Finish::none}, 0, InPlace::no);
  const Group all = Group::all(builder.shape(), 0);
  for (const int member : all.from_own()) builder.reduce_all(all, member, builder.part_of(all[member]));
  EXPECT_EQ(std::move(builder).build().scratch_chunks, 1U);  // the one message
}

// In place is a property of one rank: other ranks see no difference, and every rounding stays.
TEST(Builder, InPlaceChangesNoChannelAndNoResult) {
  for (const int ranks : {2, 3, 4, 6})
    for (const Algorithm& algorithm : algorithms()) {
      Shape shape{algorithm.collective, ranks, ranks - 1, 1, Finish::none};
      std::vector<Home> homes(static_cast<std::size_t>(ranks));
      for (std::size_t r = 0; r < homes.size(); ++r) homes[r].node = static_cast<std::uint32_t>(r / 2);
      const Tiers tiers = algorithm.name == "hierarchical" ? Tiers::of(homes) : Tiers::flat(ranks);
      shape.pieces = algorithm.pieces(shape, tiers);
      if (!algorithm.refuses(shape, tiers).empty() || shape.collective == Collective::all_to_all) continue;
      if (reduces(shape.collective)) shape.finish = Finish::scale_contributions;
      const std::vector<InPlace> none(static_cast<std::size_t>(ranks), InPlace::no);
      const std::vector<InPlace> all(static_cast<std::size_t>(ranks), InPlace::yes);
      const Plan apart = build_plan(algorithm, shape, tiers, none);
      const Plan together = build_plan(algorithm, shape, tiers, all);
      for (std::size_t r = 0; r < none.size(); ++r) {
        EXPECT_EQ(apart.programs[r].channels, together.programs[r].channels) << algorithm.name;
        EXPECT_EQ(apart.programs[r].receivers, together.programs[r].receivers) << algorithm.name;
        EXPECT_EQ(apart.programs[r].fan, together.programs[r].fan) << algorithm.name;
      }
      VerifyRequest request;
      const Result<Outcome> first = verify(apart, request);
      request.in_place = all;
      const Result<Outcome> second = verify(together, request);
      ASSERT_TRUE(first.ok() && second.ok());
      EXPECT_EQ(first.value(), second.value()) << algorithm.name << " " << name_of(shape.collective);
    }
}

TEST(Catalog, RefusesWithAReason) {
  std::vector<Home> uneven(3);
  uneven[2].node = 1;
  const Algorithm* hierarchical = find_algorithm("hierarchical", Collective::all_reduce);
  ASSERT_NE(hierarchical, nullptr);
  const Shape shape = all_reduce_of(3, 3);
  EXPECT_EQ(hierarchical->refuses(shape, Tiers::of(uneven)), "");
  EXPECT_EQ(hierarchical->refuses(shape, Tiers::flat(3)), "there is one tier");
  const Algorithm* ring = find_algorithm("ring", Collective::all_reduce);
  ASSERT_NE(ring, nullptr);
  EXPECT_EQ(ring->refuses(all_reduce_of(1, 1), Tiers::flat(1)), "there is one rank");
  EXPECT_EQ(ring->refuses(shape, Tiers::of(uneven)), "");
  EXPECT_EQ(find_algorithm("ring", Collective::gather), nullptr);
  // A step for blocks of different sizes has more targets than a step may have: it is cut.
  std::vector<Home> hosts(101);
  for (std::uint32_t r = 0; r < hosts.size(); ++r) hosts[r].node = std::min(r, 99U);
  const Shape gather{Collective::all_gather, 101, 0, 1, Finish::none};
  EXPECT_EQ(find_algorithm("hierarchical", Collective::all_gather)->refuses(gather, Tiers::of(hosts)), "");
}

}  // namespace
}  // namespace seto
