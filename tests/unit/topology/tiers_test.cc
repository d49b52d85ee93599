#include "src/topology/tiers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace seto {
namespace {

using testing::ElementsAre;

// 12 ranks: 2 a node, 3 nodes a site, 2 sites.
Tiers three_tiers() {
  std::vector<Home> homes(12);
  for (std::uint32_t r = 0; r < 12; ++r) homes[r] = {r / 2, r / 6};
  return Tiers::of(homes);
}

TEST(Tiers, OfOneKindAreFlat) {
  const Tiers tiers = Tiers::flat(5);
  EXPECT_TRUE(tiers.uniform());
  EXPECT_EQ(tiers.count(), 1);
  EXPECT_EQ(tiers.size(0), 5);
  EXPECT_THAT(tiers.group(3, 0), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(tiers.coordinate(3, 0), 3);
}

TEST(Tiers, OfOneRankHaveOneTier) {
  const Tiers tiers = Tiers::flat(1);
  EXPECT_EQ(tiers.count(), 1);
  EXPECT_EQ(tiers.size(0), 1);
  EXPECT_THAT(tiers.group(0, 0), ElementsAre(0));
}

TEST(Tiers, KeepOnlyTiersWithSeveralMembers) {
  std::vector<Home> homes(4);
  for (std::uint32_t r = 0; r < 4; ++r) homes[r] = {r, r / 2};  // one rank a node
  const Tiers tiers = Tiers::of(homes);
  EXPECT_EQ(tiers.count(), 2);
  EXPECT_EQ(tiers.size(0), 2);
  EXPECT_EQ(tiers.size(1), 2);
}

TEST(Tiers, CoordinatesGroupsAndColumns) {
  const Tiers tiers = three_tiers();
  ASSERT_EQ(tiers.count(), 3);
  EXPECT_EQ(tiers.size(0), 2);
  EXPECT_EQ(tiers.size(1), 3);
  EXPECT_EQ(tiers.size(2), 2);
  EXPECT_EQ(tiers.coordinate(9, 0), 1);
  EXPECT_EQ(tiers.coordinate(9, 1), 1);
  EXPECT_EQ(tiers.coordinate(9, 2), 1);
  EXPECT_THAT(tiers.group(9, 0), ElementsAre(8, 9));
  EXPECT_THAT(tiers.group(9, 1), ElementsAre(7, 9, 11));
  EXPECT_THAT(tiers.group(9, 2), ElementsAre(3, 9));
  EXPECT_THAT(tiers.column(9, 0, 0), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(tiers.column(9, 1, 2), ElementsAre(5, 11));
  EXPECT_THAT(tiers.column(9, 2, 0), ElementsAre(3));
}

TEST(Tiers, EveryRankIsInOneColumnAndPositionsAreAPermutationWithColumnsTogether) {
  const Tiers tiers = three_tiers();
  std::vector<std::uint32_t> positions;
  for (Rank rank = 0; rank < 12; ++rank) positions.push_back(tiers.position(rank));
  for (int member = 0; member < tiers.size(0); ++member) {
    const std::vector<Rank> column = tiers.column(4, 0, member);
    ASSERT_EQ(column.size(), 6U);
    std::vector<std::uint32_t> at;
    for (const Rank rank : column) at.push_back(positions[static_cast<std::size_t>(rank)]);
    std::sort(at.begin(), at.end());
    EXPECT_EQ(at.back() - at.front(), 5U);
  }
  std::sort(positions.begin(), positions.end());
  for (std::uint32_t i = 0; i < 12; ++i) EXPECT_EQ(positions[i], i);
}

TEST(Tiers, NumberingAcrossNodesGivesTheSameGroups) {
  std::vector<Home> striped(6);
  for (std::uint32_t r = 0; r < 6; ++r) striped[r].node = r % 3;
  const Tiers tiers = Tiers::of(striped);
  EXPECT_THAT(tiers.group(4, 0), ElementsAre(1, 4));
  EXPECT_THAT(tiers.group(4, 1), ElementsAre(3, 4, 5));
}

TEST(Tiers, NodesOrSitesOfDifferentSizesAreNotUniform) {
  std::vector<Home> nodes(3);
  nodes[2].node = 1;
  EXPECT_FALSE(Tiers::of(nodes).uniform());
  std::vector<Home> sites(3);
  for (std::uint32_t r = 0; r < 3; ++r) sites[r] = {r, r / 2};
  EXPECT_FALSE(Tiers::of(sites).uniform());
}

TEST(Tiers, KindsSayWhatAMessageCrosses) {
  const auto kinds = [](const std::vector<Home>& homes) {
    const Tiers tiers = Tiers::of(homes);
    std::vector<TierKind> all;
    for (int tier = 0; tier < tiers.count(); ++tier) all.push_back(tiers.kind(tier));
    EXPECT_EQ(tiers.widest(), all.back());
    return all;
  };
  EXPECT_THAT(kinds({{0, 0}}), ElementsAre(TierKind::node));
  EXPECT_THAT(kinds({{0, 0}, {0, 0}}), ElementsAre(TierKind::node));
  EXPECT_THAT(kinds({{0, 0}, {1, 0}}), ElementsAre(TierKind::site));  // one rank a node
  EXPECT_THAT(kinds({{0, 0}, {1, 1}}), ElementsAre(TierKind::world));
  EXPECT_THAT(kinds({{0, 0}, {0, 0}, {1, 0}, {1, 0}}), ElementsAre(TierKind::node, TierKind::site));
  EXPECT_THAT(kinds({{0, 0}, {0, 0}, {1, 1}, {1, 1}}), ElementsAre(TierKind::node, TierKind::world));
  EXPECT_THAT(kinds({{0, 0}, {0, 0}, {1, 0}}), ElementsAre(TierKind::site));  // not uniform
  EXPECT_THAT(kinds({{0, 0}, {1, 0}, {2, 1}}), ElementsAre(TierKind::world));
}

}  // namespace
}  // namespace seto
