// Plans that go round the sites: right in any order of the ring, and only sites that follow one another in it exchange messages.

#include "algorithms/site_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/engine/lowering.h"
#include "src/plan/verify.h"
#include "tests/support/seed.h"

namespace seto {
namespace {

const Algorithm& site_ring() { return *find_algorithm("site_ring", Collective::all_reduce); }

Shape shape_on(const Tiers& tiers) {
  Shape shape{Collective::all_reduce, tiers.ranks(), 0, 1, Finish::scale_contributions};
  shape.pieces = site_ring().pieces(shape, tiers);
  return shape;
}

// The pairs of sites that exchange messages.
std::set<std::pair<int, int>> pairs_of(const Plan& plan, const Tiers& tiers) {
  std::set<std::pair<int, int>> pairs;
  for (const Program& program : plan.programs)
    for (const Channel& channel : program.channels)
      for (const Rank receiver : program.receivers_of(channel))
        if (tiers.member_of(channel.sender) != tiers.member_of(receiver))
          pairs.emplace(tiers.member_of(channel.sender), tiers.member_of(receiver));
  return pairs;
}

TEST(SiteRing, IsRightInAnyOrderAndUsesTheLinksOfTheRingOnly) {
  std::mt19937_64 random(testing::chosen_seed());
  for (const auto& [ranks, nodes, sites] : std::initializer_list<std::array<int, 3>>{
           {3, 3, 3}, {4, 4, 4}, {5, 5, 5}, {6, 6, 3}, {8, 4, 4}, {12, 6, 3}, {16, 8, 4}, {20, 10, 5}}) {
    Tiers tiers = made_up_tiers(ranks, nodes, sites).value();
    std::vector<int> order(static_cast<std::size_t>(sites));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin() + 1, order.end(), random);
    tiers.take_ring(order);
    SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(sites) + " sites");
    const Shape shape = shape_on(tiers);
    Plan plan = build_plan(site_ring(), shape, tiers, {});
    ASSERT_TRUE(verify(plan, {}).ok()) << verify(plan, {}).status().text();
    std::set<std::pair<int, int>> links;
    for (std::size_t i = 0; i < order.size(); ++i) links.emplace(order[i], order[(i + 1) % order.size()]);
    EXPECT_EQ(pairs_of(plan, tiers), links);
    for (Program& program : plan.programs) program = lower(program, shape, InPlace::no, {LoweringRules::Chains::fold});
    ASSERT_TRUE(verify(plan, {}).ok()) << verify(plan, {}).status().text();
  }
}

TEST(SiteRing, NeedsThreeSitesOfOneSize) {
  EXPECT_EQ(refuses_site_ring(Tiers::flat(8)), "there are fewer than three sites");
  EXPECT_EQ(refuses_site_ring(made_up_tiers(8, 4, 1).value()), "there are fewer than three sites");
  EXPECT_EQ(refuses_site_ring(made_up_tiers(8, 4, 2).value()), "there are fewer than three sites");
  EXPECT_EQ(refuses_site_ring(Tiers::of({{0, 0}, {0, 0}, {1, 1}, {2, 2}})), "sites or hosts differ in size");
  EXPECT_EQ(refuses_site_ring(made_up_tiers(6, 3, 3).value()), "");
}

TEST(SiteRing, AnOrderThatIsNoneIsNotTaken) {
  Tiers tiers = made_up_tiers(4, 4, 4).value();
  const std::uint32_t digest = tiers.digest();
  const std::vector<int> own = {0, 1, 2, 3};
  tiers.take_ring({0, 2, 1, 3});
  EXPECT_NE(tiers.digest(), digest) << "ranks that know different orders must not run one operation";
  for (const std::vector<int>& wrong : std::vector<std::vector<int>>{{}, {0, 1, 2}, {0, 1, 1, 3}, {0, 1, 2, 4}}) {
    tiers.take_ring(wrong);
    EXPECT_EQ(std::vector<int>(tiers.ring().begin(), tiers.ring().end()), own);
  }
  EXPECT_EQ(tiers.digest(), digest);
}

}  // namespace
}  // namespace seto
