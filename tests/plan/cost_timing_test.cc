// The cost of building one rank's program in a large world.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "algorithms/algorithm.h"
#include "src/engine/lowering.h"

namespace seto {
namespace {

constexpr int kRanks = 1024;
constexpr double kMostMs = 10;
constexpr int kRounds = 7;
constexpr int kMostRounds = 50;

Tiers eight_by_sixteen_by_eight() {
  std::vector<Home> homes(kRanks);
  for (std::uint32_t r = 0; r < homes.size(); ++r) homes[r] = {r / 8, r / 128};
  return Tiers::of(homes);
}

struct Cost {
  double ms = 1e9;  // the best of some runs, because other programs only add time
  std::size_t plain_steps = 0;
  std::size_t lowered_steps = 0;
};

Cost cost_of_one_rank(const Algorithm& algorithm, const Tiers& tiers) {
  Shape shape{algorithm.collective, kRanks, 0, 1, Finish::none};
  shape.pieces = algorithm.pieces(shape, tiers);
  Cost cost;
  for (int round = 0; round < kRounds || (cost.ms >= kMostMs && round < kMostRounds); ++round) {
    const auto begin = std::chrono::steady_clock::now();
    const Program plain = build_program(algorithm, shape, tiers, 517, InPlace::no);
    const Program lowered = lower(plain, shape, InPlace::no, {LoweringRules::Chains::fold});
    const auto end = std::chrono::steady_clock::now();
    cost.ms = std::min(cost.ms, std::chrono::duration<double, std::milli>(end - begin).count());
    cost.plain_steps = plain.steps.size();
    cost.lowered_steps = lowered.steps.size();
  }
  return cost;
}

TEST(ProgramCost, HierarchicalOverAThousandRanks) {
  const Tiers tiers = eight_by_sixteen_by_eight();
  ASSERT_EQ(tiers.count(), 3);
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.name != "hierarchical") continue;
    const Cost cost = cost_of_one_rank(algorithm, tiers);
    std::printf("%s: %.2f ms for one rank of %d, %zu steps, %zu lowered\n", name_of(algorithm.collective).data(), cost.ms, kRanks,
                cost.plain_steps, cost.lowered_steps);
    const bool whole = algorithm.collective == Collective::all_reduce || algorithm.collective == Collective::broadcast ||
                       algorithm.collective == Collective::reduce;
    // Peers at each tier: 7, 15 and 7. If each chunk has an owner, a rank moves 1,024 parts with any algorithm.
    EXPECT_LE(cost.plain_steps, whole ? 4U * (7 + 15 + 7) + 8 : 4U * kRanks) << name_of(algorithm.collective);
    EXPECT_LE(cost.lowered_steps, cost.plain_steps);
#if defined(NDEBUG) && !defined(SETO_SANITIZED)
    EXPECT_LT(cost.ms, kMostMs) << name_of(algorithm.collective);
#endif
  }
}

}  // namespace
}  // namespace seto
