// Plans that go round the hosts of a site: right over hosts and sites of any sizes, and each rank has two peers among the hosts
// of its site, however many they are.

#include "algorithms/host_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "src/engine/lowering.h"
#include "src/plan/chunk_map.h"
#include "src/plan/verify.h"
#include "tests/support/seed.h"
#include "tests/support/uneven_tiers.h"
#include "transports/geometry.h"

namespace seto {
namespace {

constexpr Collective kCollectives[] = {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather};

Plan plan_on(const Tiers& tiers, Collective collective) {
  const Algorithm& algorithm = *find_algorithm("host_ring", collective);
  Shape shape{collective, tiers.ranks(), 0, 1, reduces(collective) ? Finish::scale_contributions : Finish::none};
  shape.pieces = algorithm.pieces(shape, tiers);
  Plan plan = build_plan(algorithm, shape, tiers, {});
  for (Program& program : plan.programs) program = lower(program, shape, InPlace::no, {LoweringRules::Chains::fold});
  return plan;
}

// The most peers that a rank has on other hosts of its site.
std::size_t peers_in_site(const Plan& plan, const Tiers& tiers) {
  std::vector<std::set<Rank>> peers(plan.programs.size());
  for (const Program& program : plan.programs)
    for (const Channel& channel : program.channels)
      for (const Rank receiver : program.receivers_of(channel)) {
        if (tiers.kind(tiers.between(channel.sender, receiver)) != TierKind::site) continue;
        peers[static_cast<std::size_t>(channel.sender)].insert(receiver);
        peers[static_cast<std::size_t>(receiver)].insert(channel.sender);
      }
  std::size_t most = 0;
  for (const std::set<Rank>& one : peers) most = std::max(most, one.size());
  return most;
}

void expect_right(const Plan& plan) {
  const Result<Outcome> outcome = verify(plan, {});
  ASSERT_TRUE(outcome.ok()) << outcome.status().text();
  for (const Program& program : plan.programs)
    for (const Channel& channel : program.channels) ASSERT_LT(channel.port, ports_of(plan.shape.ranks));
}

TEST(HostRing, OfManyHostsHasTwoPeers) {
  for (const auto& [ranks, hosts, sites] : std::initializer_list<std::array<int, 3>>{{80, 40, 1}, {48, 24, 2}, {24, 24, 4}}) {
    const Tiers tiers = made_up_tiers(ranks, hosts, sites).value();
    for (const Collective collective : kCollectives) {
      SCOPED_TRACE(std::string(name_of(collective)) + ", " + std::to_string(hosts) + " hosts");
      const Plan plan = plan_on(tiers, collective);
      expect_right(plan);
      EXPECT_EQ(peers_in_site(plan, tiers), 2U);
    }
  }
}

// Sites that state rates own shares by them, and hosts of several sizes have teams of several ranks.
TEST(HostRing, IsRightWhereSitesStateRatesAndHostsDiffer) {
  std::mt19937_64 random(testing::chosen_seed());
  for (const bool even : {true, false})
    for (int round = 0; round < 6; ++round) {
      std::vector<Home> homes;
      for (std::uint32_t host = 0; host < 12; ++host)
        for (std::uint64_t rank = 0; rank < (even ? 2 : 1 + random() % 3); ++rank) homes.push_back({host, host / 4});
      const Tiers tiers = support::with_random_rates(Tiers::of(homes), random);
      for (const Collective collective : kCollectives) {
        SCOPED_TRACE(std::string(name_of(collective)) + ", nodes of " + support::text_of(homes));
        expect_right(plan_on(tiers, collective));
      }
    }
}

TEST(HostRing, NeedsASiteOfThreeHosts) {
  EXPECT_EQ(refuses_host_ring(Tiers::flat(8)), "there is one tier");
  EXPECT_EQ(refuses_host_ring(made_up_tiers(8, 8, 1).value()), "there is one tier");
  EXPECT_EQ(refuses_host_ring(made_up_tiers(8, 2, 1).value()), "no site has more than two hosts");
  EXPECT_EQ(refuses_host_ring(made_up_tiers(8, 4, 4).value()), "no site has more than two hosts");
  EXPECT_EQ(refuses_host_ring(made_up_tiers(8, 4, 2).value()), "no site has more than two hosts");
  EXPECT_EQ(refuses_host_ring(made_up_tiers(6, 3, 1).value()), "");
  EXPECT_EQ(refuses_host_ring(made_up_tiers(6, 6, 2).value()), "");
}

// Each hop of a ring of hosts would encode.
TEST(HostRing, IsCodedBetweenSitesAlone) {
  const Algorithm& algorithm = *find_algorithm("host_ring", Collective::all_reduce);
  const Shape hosts{Collective::all_reduce, 6, 0, 6, Finish::none, 1, 2};
  EXPECT_EQ(algorithm.encodings(hosts, made_up_tiers(6, 3, 1).value()), 0U);
  const Shape two_sites{Collective::all_reduce, 12, 0, 12, Finish::none, 1, 4};
  EXPECT_EQ(algorithm.encodings(two_sites, made_up_tiers(12, 6, 2).value()), 1U);
  const Shape three_sites{Collective::all_reduce, 18, 0, 18, Finish::none, 1, 4};
  EXPECT_EQ(algorithm.encodings(three_sites, made_up_tiers(18, 9, 3).value()), 2U);
}

}  // namespace
}  // namespace seto
