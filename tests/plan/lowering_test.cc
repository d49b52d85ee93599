#include "src/engine/lowering.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>

#include "algorithms/algorithm.h"
#include "src/plan/text.h"
#include "src/plan/verify.h"

namespace seto {
namespace {

constexpr LoweringRules kFold{LoweringRules::Chains::fold};
constexpr LoweringRules kKeep{LoweringRules::Chains::keep};

Program lowered(const char* name, int ranks, Rank rank, LoweringRules rules) {
  const Algorithm* algorithm = find_algorithm(name, Collective::all_reduce);
  Shape shape{Collective::all_reduce, ranks, 0, 1, Finish::none};
  shape.pieces = algorithm->pieces(shape, Tiers::flat(ranks));
  return lower(build_program(*algorithm, shape, Tiers::flat(ranks), rank, InPlace::no), shape, InPlace::no, rules);
}

std::size_t places_written(const Program& program) {
  std::size_t written = 0;
  for (const Step& step : program.steps)
    for (const Operand& target : program.targets(step)) written += target.space == Space::channel ? 0 : step.count;
  return written;
}

// The program that a person would write: parts to slots; one pass over all contributions to the buffer and a slot; results from
// slots.
TEST(Lowering, TwoShotIsThreeStagesOfOnePassEach) {
  constexpr int kRanks = 4;
  for (const LoweringRules rules : {kFold, kKeep}) {
    const Program program = lowered("two_shot", kRanks, 1, rules);
    ASSERT_EQ(program.steps.size(), 3U + 1 + 3);
    EXPECT_EQ(program.scratch_chunks, 0U);
    EXPECT_EQ(program.stages(), 3U);
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      const Step& step = program.steps[i];
      const auto sources = program.sources(step);
      const auto targets = program.targets(step);
      EXPECT_EQ(step.stage, i < 3 ? 0 : i < 4 ? 1 : 2);
      if (step.stage == 1) {
        EXPECT_EQ(step.verb, Verb::reduce);
        ASSERT_EQ(sources.size(), static_cast<std::size_t>(kRanks));
        for (Rank rank = 0; rank < kRanks; ++rank)
          EXPECT_EQ(sources[static_cast<std::size_t>(rank)].space, rank == 1 ? Space::input : Space::channel);
        ASSERT_EQ(targets.size(), 2U);
        EXPECT_EQ(targets[0].space, Space::output);
        EXPECT_EQ(targets[1].space, Space::channel);
        EXPECT_EQ(program.channels[targets[1].index].receiver_count, 3U);
        continue;
      }
      EXPECT_EQ(step.verb, Verb::copy);
      ASSERT_EQ(sources.size() + targets.size(), 2U);
      EXPECT_EQ(sources[0].space, step.stage == 0 ? Space::input : Space::channel);
      EXPECT_EQ(targets[0].space, step.stage == 0 ? Space::channel : Space::output);
    }
  }
}

TEST(Lowering, PartialSumsOfARingAreNeverStored) {
  for (const int ranks : {2, 3, 5, 8}) {
    const Program program = lowered("ring", ranks, 0, kFold);
    EXPECT_EQ(program.scratch_chunks, 0U);
    EXPECT_EQ(places_written(program), static_cast<std::size_t>(ranks));  // every chunk of the output is written once
    EXPECT_EQ(program.steps.size(), 2U * static_cast<std::size_t>(ranks) - 1);
  }
}

TEST(Lowering, EveryStepIsALaneInTheOrderOfStages) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective != Collective::all_reduce || algorithm.name == "hierarchical") continue;
    const Program program = lowered(algorithm.name.data(), 5, 2, kFold);
    ASSERT_EQ(program.lanes.size(), program.steps.size());
    EXPECT_TRUE(std::is_sorted(program.steps.begin(), program.steps.end(),
                               [](const Step& a, const Step& b) { return a.stage < b.stage; }));
    for (std::uint32_t i = 0; i < program.lanes.size(); ++i)
      for (const Dependency& dependency : program.dependencies_of(program.steps[i])) EXPECT_LT(dependency.lane, i);
  }
}

// Two reduces on rank 0 in one round. `first`: the partial sum is the first source of the second reduce.
Program two_reduces(LoweringRules rules, std::initializer_list<Rank> second) {
  const Shape shape{Collective::reduce, 3, 0, 1, Finish::none};
  Builder builder(shape, 0, InPlace::no);
  builder.reduce(0, {0, 1}, {0, 1});
  builder.reduce(0, second, {0, 1});
  return lower(std::move(builder).build(), shape, InPlace::no, rules);
}

TEST(Lowering, AChainIsOnePassOnlyIfThatMovesNoRounding) {
  EXPECT_EQ(two_reduces(kFold, {0, 2}).steps.size(), 1U);
  EXPECT_EQ(two_reduces(kFold, {0, 2}).steps.front().source_count, 3);
  EXPECT_EQ(two_reduces(kKeep, {0, 2}).steps.size(), 2U);
  EXPECT_EQ(two_reduces(kFold, {2, 0}).steps.size(), 2U) << "a sum on the right was re-associated";
  EXPECT_EQ(rules_for(DataType::float32).chains, LoweringRules::Chains::fold);
  EXPECT_EQ(rules_for(DataType::int8).chains, accumulates_in_itself(DataType::int8) ? kFold.chains : kKeep.chains);
  EXPECT_EQ(rules_for(DataType::float16).chains, LoweringRules::Chains::keep);
  EXPECT_EQ(rules_for(DataType::bfloat16).chains, LoweringRules::Chains::keep);
}

TEST(Lowering, KeepsTheChannels) {
  const Algorithm* algorithm = find_algorithm("double_tree", Collective::all_reduce);
  const Shape shape{Collective::all_reduce, 6, 0, 2, Finish::divide_result};
  for (Rank rank = 0; rank < 6; ++rank) {
    const Program plain = build_program(*algorithm, shape, Tiers::flat(6), rank, InPlace::no);
    for (const InPlace in_place : {InPlace::no, InPlace::yes}) {
      const Program other = build_program(*algorithm, shape, Tiers::flat(6), rank, in_place);
      const Program program = lower(other, shape, in_place, kFold);
      EXPECT_EQ(program.channels, plain.channels);
      EXPECT_EQ(program.receivers, plain.receivers);
    }
  }
}

TEST(Lowering, SendsOfOnePlaceWithAWriteBetweenThemStaySeparate) {
  const Shape shape{Collective::all_reduce, 3, 0, 2, Finish::divide_result};
  Builder builder(shape, 0, InPlace::no);
  builder.reduce(0, {0, 1, 2}, {0, 1});
  builder.reduce(0, {0, 1, 2}, {1, 1});
  builder.next_round();
  builder.copy(0, 1, {0, 2});
  builder.finish(0, {0, 1});
  builder.copy(0, 2, {0, 2});
  const Program program = lower(std::move(builder).build(), shape, InPlace::no, kFold);
  for (const Step& step : program.steps)
    EXPECT_LE(std::count_if(program.targets(step).begin(), program.targets(step).end(),
                            [](const Operand& target) { return target.space == Space::channel; }),
              1);
}

// ---- random authors ----

// The same statements on every rank: for each range of chunks, sums along a random tree and results back along another, with the
// statements of all ranges interleaved.
class RandomAuthor {
 public:
  RandomAuthor(const Shape& shape, std::uint64_t seed) : shape_(shape), random_(seed) {
    for (std::uint32_t chunk = 0; chunk < shape.pieces;) {
      const std::uint32_t count = 1 + static_cast<std::uint32_t>(pick(shape.pieces - chunk));
      ranges_.push_back(
          {{chunk, count}, all_ranks(), {}, std::vector<std::uint32_t>(static_cast<std::size_t>(shape.ranks), 0), false});
      chunk += count;
    }
  }

  void write(Builder& builder) {
    for (;;) {
      std::vector<Part*> open;
      for (Part& part : ranges_)
        if (!part.done()) open.push_back(&part);
      if (open.empty()) return;
      state(builder, *open[pick(open.size())]);
    }
  }

 private:
  struct Part {
    Range range;
    std::vector<Rank> summing;  // ranks that still hold a part of the sum
    std::vector<Rank> waiting;  // ranks without the result
    std::vector<std::uint32_t> stage;
    bool summed;
    bool done() const { return summed && waiting.empty(); }
  };

  std::size_t pick(std::size_t count) { return random_() % count; }

  std::vector<Rank> all_ranks() const {
    std::vector<Rank> ranks;
    for (Rank rank = 0; rank < shape_.ranks; ++rank) ranks.push_back(rank);
    return ranks;
  }

  void state(Builder& builder, Part& part) {
    if (part.summed) return spread(builder, part);
    if (part.summing.size() == 1) {
      builder.finish(part.summing.front(), part.range);
      part.summed = true;
      for (const Rank rank : all_ranks())
        if (rank != part.summing.front()) part.waiting.push_back(rank);
      return;
    }
    std::shuffle(part.summing.begin(), part.summing.end(), random_);
    const std::size_t count = 2 + pick(part.summing.size() - 1);
    const std::vector<Rank> sources(part.summing.begin(), part.summing.begin() + static_cast<std::ptrdiff_t>(count));
    const Rank to = sources[pick(count)];
    std::uint32_t round = 0;
    for (const Rank rank : sources)
      if (rank != to) round = std::max(round, stage_of(part, rank));
    round += static_cast<std::uint32_t>(pick(3) == 0 ? 1 : 0);
    builder.set_round(round);
    builder.reduce(to, sources, part.range);
    stage_of(part, to) = std::max(stage_of(part, to), round + 1);
    std::erase_if(part.summing,
                  [&](Rank rank) { return rank != to && std::find(sources.begin(), sources.end(), rank) != sources.end(); });
  }

  void spread(Builder& builder, Part& part) {
    Rank from = static_cast<Rank>(pick(static_cast<std::size_t>(shape_.ranks)));
    while (std::find(part.waiting.begin(), part.waiting.end(), from) != part.waiting.end()) from = (from + 1) % shape_.ranks;
    const std::size_t at = pick(part.waiting.size());
    const Rank to = part.waiting[at];
    builder.set_round(stage_of(part, from));
    builder.copy(from, to, part.range);
    stage_of(part, to) = stage_of(part, from) + 1;
    part.waiting.erase(part.waiting.begin() + static_cast<std::ptrdiff_t>(at));
  }

  static std::uint32_t& stage_of(Part& part, Rank rank) { return part.stage[static_cast<std::size_t>(rank)]; }

  Shape shape_;
  std::mt19937_64 random_;
  std::vector<Part> ranges_;
};

void check_random_author(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Shape shape{Collective::all_reduce, 2 + static_cast<int>(random() % 5), 0, 1 + static_cast<std::uint32_t>(random() % 5),
              Finish::none};
  shape.finish = static_cast<Finish>(random() % 3);
  Plan plan{"random", shape, {}};
  VerifyRequest request;
  for (Rank rank = 0; rank < shape.ranks; ++rank) {
    request.in_place.push_back(random() % 2 == 0 ? InPlace::yes : InPlace::no);
    Builder builder(shape, rank, request.in_place.back());
    RandomAuthor(shape, seed).write(builder);
    plan.programs.push_back(std::move(builder).build());
  }
  for (const LoweringRules rules : {kKeep, kFold}) {
    request.chains = rules.chains == LoweringRules::Chains::fold ? Chains::one_sum : Chains::separate;
    request.order = StepOrder::readiness;
    request.capacity = 1;
    const Result<Outcome> plain = verify(plan, request);
    ASSERT_TRUE(plain.ok()) << plain.status().text() << "\n" << to_text(plan);
    Plan fused{"random", shape, {}};
    for (std::size_t r = 0; r < plan.programs.size(); ++r)
      fused.programs.push_back(lower(plan.programs[r], shape, request.in_place[r], rules));
    for (const StepOrder order : {StepOrder::readiness, StepOrder::skewed}) {
      request.order = order;
      request.capacity = order == StepOrder::skewed ? 2 : 1;
      const Result<Outcome> outcome = verify(fused, request);
      ASSERT_TRUE(outcome.ok()) << outcome.status().text() << "\n" << to_text(plan) << "\nlowered\n" << to_text(fused);
      EXPECT_EQ(outcome.value(), plain.value()) << "lowering moved a rounding\n"
                                                << to_text(plan) << "\nlowered\n"
                                                << to_text(fused);
    }
  }
}

TEST(Lowering, IsRightForRandomAuthors) {
  constexpr std::uint64_t kFirst = 7100;
  std::printf("seeds from %llu\n", static_cast<unsigned long long>(kFirst));
  for (std::uint64_t seed = kFirst; seed < kFirst + 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    check_random_author(seed);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace seto
