// The pairs that have a control channel in an overlay, and what follows from lost edges.

#include "src/control/overlay/overlay_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "src/control/overlay/overlay_routes.h"
#include "tests/support/seed.h"

namespace seto {
namespace {

std::vector<OverlayPlace> one_site(std::uint32_t members) {
  std::vector<OverlayPlace> places;
  for (std::uint32_t member = 0; member < members; ++member) places.push_back({member, 0});
  return places;
}

std::size_t most_peers(const OverlayGraph& graph) {
  std::size_t most = 0;
  for (OverlayMember member = 0; member < graph.members(); ++member) most = std::max(most, graph.peers(member).size());
  return most;
}

// From member 0 to the farthest.
std::size_t most_steps(const OverlayGraph& graph) {
  OverlayRoutes routes(graph, 0);
  std::size_t most = 0;
  for (OverlayMember member = 1; member < graph.members(); ++member) {
    const auto path = routes.path_to(member);
    EXPECT_TRUE(path.has_value()) << member;
    if (path) most = std::max(most, path->size() + 1);
  }
  return most;
}

TEST(OverlayGraph, HasFewNeighboursAndShortPaths) {
  struct Size {
    std::uint32_t members;
    std::size_t peers;
    std::size_t steps;
  };
  for (const Size& size :
       {Size{2, 1, 1}, Size{3, 2, 1}, Size{5, 4, 1}, Size{32, 9, 3}, Size{128, 13, 4}, Size{1'000, 20, 5}, Size{10'000, 28, 6}}) {
    const OverlayGraph graph(one_site(size.members));
    EXPECT_EQ(most_peers(graph), size.peers) << size.members;
    EXPECT_EQ(most_steps(graph), size.steps) << size.members;
  }
}

TEST(OverlayGraph, JoinsSitesByFewPairs) {
  std::vector<OverlayPlace> places = one_site(128);
  for (OverlayPlace& place : places) place.site = place.host / 32;
  const OverlayGraph graph(places);
  EXPECT_LE(most_peers(graph), 9U + 3U);
  EXPECT_LE(most_steps(graph), 7U);
}

TEST(OverlayGraph, JoinsEverySiteOfOneProcessToAllOthers) {
  std::vector<OverlayPlace> places = one_site(6);
  for (OverlayPlace& place : places) place.site = place.host;
  const OverlayGraph graph(places);
  for (OverlayMember member = 0; member < 6; ++member) EXPECT_EQ(graph.peers(member).size(), 5U);
}

TEST(OverlayGraph, JoinsHostsThatStateSeveralSites) {
  const OverlayGraph graph({{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}});
  EXPECT_LE(most_steps(graph), 4U);
}

std::vector<OverlayPlace> random_places(std::mt19937_64& random) {
  const auto pick = [&](std::uint32_t below) { return static_cast<std::uint32_t>(random() % below); };
  const std::uint32_t hosts = 2 + pick(20);
  const std::uint32_t sites = 1 + pick(4);
  std::vector<OverlayPlace> places;
  for (std::uint32_t host = 0; host < hosts; ++host) {
    const std::uint32_t site = host < sites ? host : pick(sites);
    for (std::uint32_t process = 1 + pick(4); process > 0; --process) places.push_back({host, site});
  }
  std::shuffle(places.begin(), places.end(), random);
  return places;
}

TEST(OverlayGraph, OfAnyHostsAndSitesIsConnectedAndTheSameFromBothEnds) {
  const std::uint64_t seed = ::seto::testing::chosen_seed();
  for (std::uint64_t round = 0; round < 200; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
    std::mt19937_64 random(seed + round);
    const OverlayGraph graph(random_places(random));
    for (OverlayMember one = 0; one < graph.members(); ++one)
      for (const OverlayMember other : graph.peers(one)) {
        ASSERT_NE(graph.place(one).host, graph.place(other).host);
        ASSERT_TRUE(graph.adjacent(other, one));
      }
    OverlayRoutes routes(graph, 0);
    for (OverlayMember one = 1; one < graph.members(); ++one) ASSERT_TRUE(routes.path_to(one).has_value());
  }
}

// Tells `routes` that all peers of a member have given it up.
void lose(OverlayRoutes& routes, OverlayMember member) {
  for (const OverlayMember one : routes.graph().peers(member)) routes.edge_lost(one, member);
}

TEST(OverlayRoutes, AnyThreeDeathsLeaveTheOthersConnected) {
  constexpr OverlayMember kMembers = 16;
  const OverlayGraph graph(one_site(kMembers));
  for (OverlayMember a = 1; a < kMembers; ++a)
    for (OverlayMember b = a + 1; b < kMembers; ++b)
      for (OverlayMember c = b + 1; c < kMembers; ++c) {
        OverlayRoutes routes(graph, 0);
        for (const OverlayMember one : {a, b, c}) lose(routes, one);
        const std::vector<bool> lost = routes.lost_members();
        ASSERT_EQ(std::count(lost.begin(), lost.end(), true), 3) << a << ", " << b << ", " << c;
      }
}

TEST(OverlayRoutes, AMemberIsLostWhenItsSiteGivesItUpThoughOthersStillWait) {
  std::vector<OverlayPlace> places = one_site(8);
  for (OverlayPlace& place : places) place.site = place.host / 4;
  OverlayRoutes routes(OverlayGraph(places), 0);
  ASSERT_FALSE(routes.lost_members()[5]);
  for (const OverlayMember one : routes.graph().peers(5))
    if (routes.graph().same_site(one, 5)) {
      EXPECT_FALSE(routes.lost_members()[5]) << "not all have given it up";
      routes.edge_lost(one, 5);
    }
  EXPECT_TRUE(routes.lost_members()[5]);
  EXPECT_FALSE(routes.path_to(5).has_value());
}

// The survivor of a site of two tells that its only peer there is lost, and is not lost itself.
TEST(OverlayRoutes, WhatAMemberTellsOfOthersIsNotHeldAgainstIt) {
  OverlayRoutes routes(OverlayGraph({{0, 0}, {1, 0}, {2, 1}, {3, 1}}), 0);
  routes.edge_lost(2, 3);
  EXPECT_EQ(routes.lost_members(), (std::vector<bool>{false, false, false, true}));
}

TEST(OverlayRoutes, MembersThatLeaveLoseNobody) {
  OverlayRoutes routes(OverlayGraph(one_site(16)), 0);
  const std::vector<OverlayMember> peers = routes.graph().peers(0);
  for (const OverlayMember one : peers) EXPECT_TRUE(routes.member_left(one));
  EXPECT_TRUE(routes.path_to(3).has_value()) << "they pass on";
  for (const OverlayMember one : peers) EXPECT_TRUE(routes.edge_lost(0, one)) << "their processes end";
  for (const OverlayMember one : peers) EXPECT_FALSE(routes.edge_lost(routes.graph().peers(one).back(), one)) << "nothing new";
  EXPECT_FALSE(routes.path_to(3).has_value());
  const std::vector<bool> lost = routes.lost_members();
  EXPECT_EQ(std::count(lost.begin(), lost.end(), true), 0);
}

TEST(OverlayRoutes, PathsWithinASiteStayThere) {
  std::vector<OverlayPlace> places = one_site(40);
  for (OverlayPlace& place : places) place.site = place.host / 20;
  OverlayRoutes routes(OverlayGraph(places), 3);
  for (OverlayMember to = 0; to < 20; ++to) {
    if (to == 3) continue;
    const OverlayPath path = routes.path_to(to).value_or(OverlayPath{99});
    for (const OverlayMember between : path) EXPECT_LT(between, 20U);
  }
}

}  // namespace
}  // namespace seto
