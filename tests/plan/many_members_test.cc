// Hierarchical plans where a tier has more members than a step has operands.

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "src/engine/lowering.h"
#include "src/plan/cost.h"
#include "src/plan/verify.h"
#include "tests/support/sanitizers.h"
#include "tests/support/uneven_tiers.h"

namespace seto {
namespace {

// Nodes of these numbers of ranks, on one site.
std::vector<Home> nodes_of(const std::vector<int>& sizes) {
  std::vector<Home> homes;
  for (std::uint32_t node = 0; node < sizes.size(); ++node)
    homes.insert(homes.end(), static_cast<std::size_t>(sizes[node]), Home{node, 0});
  return homes;
}

// Sites of these numbers of nodes, each with one rank.
std::vector<Home> sites_of(const std::vector<int>& sizes) {
  std::vector<Home> homes;
  for (std::uint32_t site = 0; site < sizes.size(); ++site)
    for (int node = 0; node < sizes[site]; ++node) homes.push_back({static_cast<std::uint32_t>(homes.size()), site});
  return homes;
}

// Nodes of one rank, but the last one has two.
std::vector<Home> uneven_nodes(std::size_t nodes) {
  std::vector<int> sizes(nodes, 1);
  sizes.back() = 2;
  return nodes_of(sizes);
}

void expect_steps_that_fit(const Plan& plan) {
  for (const Program& program : plan.programs)
    for (const Step& step : program.steps) {
      ASSERT_LE(step.source_count, kMostSources);
      ASSERT_LE(step.target_count, kMostTargets);
    }
}

void check(const Algorithm& algorithm, const Shape& shape, const Tiers& tiers) {
  const Plan plain = build_plan(algorithm, shape, tiers, {});
  VerifyRequest request;
  if (shape.codec != 0) request.max_encodings = algorithm.encodings(shape, tiers);
  for (const bool folds : {false, true}) {
    request.chains = folds ? Chains::one_sum : Chains::separate;
    request.order = StepOrder::readiness;
    request.capacity = 1;
    request.places_keep_bytes = true;
    const Result<Outcome> outcome = verify(plain, request);
    ASSERT_TRUE(outcome.ok()) << outcome.status().text();
    Plan lowered = plain;
    const LoweringRules rules{folds ? LoweringRules::Chains::fold : LoweringRules::Chains::keep};
    for (Program& program : lowered.programs) program = lower(program, shape, InPlace::no, rules);
    expect_steps_that_fit(lowered);
    request.places_keep_bytes = false;
    request.order = StepOrder::skewed;
    request.capacity = 2;
    const Result<Outcome> skewed = verify(lowered, request);
    ASSERT_TRUE(skewed.ok()) << "lowered: " << skewed.status().text();
    EXPECT_EQ(skewed.value(), outcome.value());
  }
}

// Proving a plan of many messages takes a time that grows with the square of their number.
bool is_quick(Collective collective, int ranks) {
  return ranks < (support::kEvery > 1 ? 60 : 110) || collective == Collective::reduce || collective == Collective::broadcast;
}

struct Case {
  const char* name;
  std::vector<Home> homes;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

class ManyMembers : public ::testing::TestWithParam<Case> {};

TEST_P(ManyMembers, HavePlansThatAreRight) {
  const Tiers tiers = Tiers::of(GetParam().homes);
  ASSERT_GT(tiers.count(), 1);
  int checked = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (!support::follows_tiers(algorithm.name)) continue;
    SCOPED_TRACE(std::string(algorithm.name) + " " + std::string(name_of(algorithm.collective)));
    Shape shape{algorithm.collective, tiers.ranks(), tiers.ranks() - 1, 1, Finish::none};
    const std::string refused = algorithm.refuses(shape, tiers);
    if (refused == "no site has more than two hosts") continue;
    EXPECT_EQ(refused, "");
    if (!is_quick(algorithm.collective, tiers.ranks())) continue;
    shape.pieces = algorithm.pieces(shape, tiers);
    check(algorithm, shape, tiers);
    ++checked;
    shape.codec = 1;
    shape.coded_tiers = static_cast<std::uint8_t>(1U << (tiers.count() - 1));
    if (algorithm.encodings(shape, tiers) > 0) check(algorithm, shape, tiers);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GE(checked, 4);
}

// Choice counts, for each pass beyond the first, the sum that it reads and the one that was written before it.
TEST(ManyMembersOfUniformTiers, CostWhatTheirPlansRead) {
  const Tiers tiers = made_up_tiers(200, 100, 1).value();
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::reduce}) {
    const Algorithm& algorithm = *find_algorithm("hierarchical", collective);
    Shape shape{collective, tiers.ranks(), 0, 1, Finish::none};
    shape.pieces = algorithm.pieces(shape, tiers);
    const Program plain = build_program(algorithm, shape, tiers, 0, InPlace::no);
    const Program program = lower(plain, shape, InPlace::no, {LoweringRules::Chains::keep});
    const StepCost cost = cost_of(program);
    const double parts = static_cast<double>(cost.read + cost.written + cost.received + cost.sent) / shape.pieces;
    const RankLoad load = algorithm.cost_form(tiers).rank;
    EXPECT_NEAR(load.memory / parts, 1, 0.005) << name_of(collective);
    EXPECT_GE(load.steps, static_cast<double>(program.steps.size())) << name_of(collective);
  }
}

INSTANTIATE_TEST_SUITE_P(OfOneTier, ManyMembers,
                         ::testing::Values(Case{"Node65And3", nodes_of({65, 3})}, Case{"Nodes66", uneven_nodes(66)},
                                           Case{"Site65And2", sites_of({65, 2})}, Case{"Site2And100And1", sites_of({2, 100, 1})},
                                           Case{"Node130And2", nodes_of({130, 2})}, Case{"Site130And4", sites_of({130, 4})}),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace seto
