#include "src/topology/tiers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace seto {
namespace {

using testing::ElementsAre;

// 12 ranks: 2 on each node, 3 nodes in each site, 2 sites.
Tiers three_tiers() {
  std::vector<Home> homes(12);
  for (std::uint32_t r = 0; r < 12; ++r) homes[r] = {r / 2, r / 6};
  return Tiers::of(homes);
}

std::vector<Rank> block(const Tiers& tiers, Rank rank, int tier) {
  const std::span<const Rank> ranks = tiers.block(tier, tiers.block_of(rank, tier));
  return {ranks.begin(), ranks.end()};
}

std::vector<Rank> members(const Tiers& tiers, Rank rank, int tier) {
  const std::span<const Rank> heads = tiers.members(tier, tiers.block_of(rank, tier));
  return {heads.begin(), heads.end()};
}

TEST(Tiers, OfOneKindAreFlat) {
  const Tiers tiers = Tiers::flat(5);
  EXPECT_TRUE(tiers.uniform());
  EXPECT_EQ(tiers.ranks(), 5);
  EXPECT_EQ(tiers.count(), 1);
  EXPECT_EQ(tiers.size(0), 5);
  EXPECT_EQ(tiers.blocks(0), 1);
  EXPECT_THAT(block(tiers, 3, 0), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(members(tiers, 3, 0), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(tiers.position(3, 0), 3);
}

TEST(Tiers, OfOneRankHaveOneTier) {
  const Tiers tiers = Tiers::flat(1);
  EXPECT_EQ(tiers.count(), 1);
  EXPECT_EQ(tiers.size(0), 1);
  EXPECT_THAT(block(tiers, 0, 0), ElementsAre(0));
}

TEST(Tiers, KeepOnlyTiersWithSeveralMembers) {
  // Two nodes of two ranks, each node a site of its own: no tier between node and world.
  const std::vector<Home> homes = {{0, 0}, {0, 0}, {1, 1}, {1, 1}};
  const Tiers tiers = Tiers::of(homes);
  EXPECT_EQ(tiers.count(), 2);
  EXPECT_EQ(tiers.size(0), 2);
  EXPECT_EQ(tiers.size(1), 2);
}

TEST(Tiers, BlocksAndMembers) {
  const Tiers tiers = three_tiers();
  ASSERT_EQ(tiers.count(), 3);
  EXPECT_TRUE(tiers.uniform());
  EXPECT_EQ(tiers.size(0), 2);
  EXPECT_EQ(tiers.size(1), 3);
  EXPECT_EQ(tiers.size(2), 2);
  EXPECT_EQ(tiers.blocks(0), 6);
  EXPECT_EQ(tiers.blocks(1), 2);
  EXPECT_THAT(block(tiers, 9, 0), ElementsAre(8, 9));
  EXPECT_THAT(block(tiers, 9, 1), ElementsAre(6, 8, 10, 7, 9, 11)) << "nodes take turns";
  EXPECT_THAT(block(tiers, 9, 2), ElementsAre(0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11)) << "sites take turns";
  EXPECT_THAT(members(tiers, 9, 1), ElementsAre(6, 8, 10));
  EXPECT_THAT(members(tiers, 9, 2), ElementsAre(0, 6));
  for (int tier = 0; tier < 3; ++tier)
    for (Rank rank = 0; rank < 12; ++rank)
      EXPECT_EQ(block(tiers, rank, tier)[static_cast<std::size_t>(tiers.position(rank, tier))], rank);
}

TEST(Tiers, NumberingAcrossNodesGivesTheSameBlocks) {
  std::vector<Home> striped(6);
  for (std::uint32_t r = 0; r < 6; ++r) striped[r].node = r % 3;
  const Tiers tiers = Tiers::of(striped);
  EXPECT_THAT(block(tiers, 4, 0), ElementsAre(1, 4));
  EXPECT_THAT(block(tiers, 4, 1), ElementsAre(0, 1, 2, 3, 4, 5));
}

// A node of four beside a node of two, in one site; a node of one rank alone in another.
TEST(Tiers, KnowWhereRanksOfABlockAreNumberedOneAfterAnother) {
  const Tiers in_order = three_tiers();
  for (int tier = 0; tier < in_order.count(); ++tier) EXPECT_TRUE(in_order.consecutive(tier)) << "tier " << tier;
  const Tiers across_nodes = Tiers::of({{0, 0}, {1, 0}, {0, 0}, {1, 0}, {2, 1}, {3, 1}, {2, 1}, {3, 1}});
  EXPECT_FALSE(across_nodes.consecutive(0));
  EXPECT_TRUE(across_nodes.consecutive(1)) << "a site has the ranks 0 to 3, whatever their nodes are";
  EXPECT_TRUE(Tiers::of({{0, 0}, {0, 0}, {0, 0}, {1, 0}}).consecutive(0)) << "of different sizes";
  EXPECT_FALSE(Tiers::of({{0, 0}, {0, 0}, {1, 0}, {0, 0}}).consecutive(0)) << "one of two blocks is";
}

TEST(Tiers, CountTheExitsOfMembersFromTheRingOfAllRanks) {
  const Tiers in_turn = Tiers::of({{0, 0}, {0, 0}, {1, 1}, {1, 1}, {2, 2}});
  for (const std::size_t site : {0U, 1U, 2U}) EXPECT_EQ(in_turn.exits_of_member(site), 1);
  const Tiers mixed = Tiers::of({{0, 0}, {1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}});
  EXPECT_EQ(mixed.exits_of_member(0), 2);
  EXPECT_EQ(mixed.exits_of_member(1), 2);
  EXPECT_EQ(Tiers::flat(3).exits_of_member(0), 1);
  EXPECT_EQ(Tiers::flat(1).exits_of_member(0), 0);
}

TEST(Tiers, BlocksMayDifferInSize) {
  const Tiers tiers = Tiers::of({{0, 0}, {0, 0}, {0, 0}, {0, 0}, {1, 0}, {1, 0}, {2, 1}});
  EXPECT_FALSE(tiers.uniform());
  ASSERT_EQ(tiers.count(), 3);
  EXPECT_EQ(tiers.size(0), 4);
  EXPECT_EQ(tiers.size(1), 2);
  EXPECT_EQ(tiers.size(2), 2);
  EXPECT_THAT(block(tiers, 4, 1), ElementsAre(0, 4, 1, 2, 5, 3)) << "each node's ranks are spread over the site";
  EXPECT_THAT(block(tiers, 6, 0), ElementsAre(6));
  EXPECT_THAT(block(tiers, 6, 1), ElementsAre(6));
  EXPECT_THAT(members(tiers, 6, 1), ElementsAre(6));
  EXPECT_THAT(members(tiers, 6, 2), ElementsAre(0, 6));
  ASSERT_EQ(tiers.neighbourhoods().size(), 3U);
  EXPECT_EQ(tiers.neighbourhood_of(5), (Neighbourhood{{2, 6, 7}, {2, 2, 2}}));
  EXPECT_EQ(tiers.neighbourhood_of(6), (Neighbourhood{{1, 1, 7}, {1, 1, 2}}));
  EXPECT_EQ(tiers.neighbourhood_of(5).member(0), 1);
  EXPECT_EQ(tiers.neighbourhood_of(5).member(2), 6);
}

TEST(Tiers, MessagesCrossTheInnermostTierThatTheirRanksShare) {
  const Tiers tiers = Tiers::of({{0, 0}, {0, 0}, {0, 0}, {1, 0}, {2, 1}});
  EXPECT_EQ(tiers.kind(tiers.between(0, 2)), TierKind::node);
  EXPECT_EQ(tiers.kind(tiers.between(2, 3)), TierKind::site);
  EXPECT_EQ(tiers.kind(tiers.between(3, 4)), TierKind::world);
  EXPECT_EQ(tiers.kind(tiers.between(4, 0)), TierKind::world);
}

TEST(Tiers, HaveTwoEndsOnEachTier) {
  const Tiers tiers = Tiers::of({{0, 0}, {1, 1}, {1, 1}, {2, 1}});  // rank 0 is alone on its node and site
  ASSERT_EQ(tiers.count(), 3);
  for (int tier = 0; tier < tiers.count(); ++tier) {
    const auto [a, b] = tiers.ends(tier);
    EXPECT_EQ(tiers.between(a, b), tier);
  }
}

TEST(Tiers, NodesOrSitesOfDifferentSizesAreNotUniform) {
  std::vector<Home> nodes(3);
  nodes[2].node = 1;
  EXPECT_FALSE(Tiers::of(nodes).uniform());
  std::vector<Home> sites(3);
  for (std::uint32_t r = 0; r < 3; ++r) sites[r] = {r, r / 2};
  EXPECT_FALSE(Tiers::of(sites).uniform());
}

TEST(Tiers, KindsNameTheLinkThatAMessageCrosses) {
  const auto kinds = [](const std::vector<Home>& homes) {
    const Tiers tiers = Tiers::of(homes);
    std::vector<TierKind> all;
    for (int tier = 0; tier < tiers.count(); ++tier) all.push_back(tiers.kind(tier));
    EXPECT_EQ(tiers.widest(), all.back());
    return all;
  };
  EXPECT_THAT(kinds({{0, 0}}), ElementsAre(TierKind::node));
  EXPECT_THAT(kinds({{0, 0}, {0, 0}}), ElementsAre(TierKind::node));
  EXPECT_THAT(kinds({{0, 0}, {1, 0}}), ElementsAre(TierKind::site));  // one rank on each node
  EXPECT_THAT(kinds({{0, 0}, {1, 1}}), ElementsAre(TierKind::world));
  EXPECT_THAT(kinds({{0, 0}, {0, 0}, {1, 0}, {1, 0}}), ElementsAre(TierKind::node, TierKind::site));
  EXPECT_THAT(kinds({{0, 0}, {0, 0}, {1, 1}, {1, 1}}), ElementsAre(TierKind::node, TierKind::world));
  EXPECT_THAT(kinds({{0, 0}, {0, 0}, {1, 0}}), ElementsAre(TierKind::node, TierKind::site));  // not uniform
  EXPECT_THAT(kinds({{0, 0}, {1, 0}, {2, 1}}), ElementsAre(TierKind::site, TierKind::world));
}

}  // namespace
}  // namespace seto
