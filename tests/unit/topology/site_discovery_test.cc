#include "src/topology/site_discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/seed.h"

namespace seto {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr std::uint32_t kLimitUs = 1'000;

HostRoundTrips all_apart(std::size_t hosts, std::uint32_t round_trip_us) {
  HostRoundTrips round_trips(hosts);
  for (std::size_t one = 0; one < hosts; ++one)
    for (std::size_t other = one + 1; other < hosts; ++other) round_trips.add(one, other, round_trip_us);
  return round_trips;
}

TEST(FindSites, HostsBelowTheLimitAreOneSite) {
  const FoundSites near = find_sites(all_apart(5, 999), kLimitUs);
  EXPECT_EQ(near.sites, 1U);
  EXPECT_THAT(near.of_host, Each(0U));
  EXPECT_FALSE(near.guessed);
  const FoundSites far = find_sites(all_apart(3, 1'000), kLimitUs);
  EXPECT_THAT(far.of_host, ElementsAre(0, 1, 2));
  EXPECT_TRUE(far.guessed) << "1 to 2 ms may be a busy moment";
  EXPECT_FALSE(find_sites(all_apart(3, 2'000), kLimitUs).guessed);
}

TEST(FindSites, OneHostAnUnknownRoundTripAndALimitOfNothingAreOneSite) {
  EXPECT_EQ(find_sites(HostRoundTrips(0), kLimitUs).sites, 1U);
  EXPECT_THAT(find_sites(HostRoundTrips(1), kLimitUs).of_host, ElementsAre(0));
  EXPECT_THAT(find_sites(HostRoundTrips(3), kLimitUs).of_host, ElementsAre(0, 0, 0));
  EXPECT_THAT(find_sites(HostRoundTrips(3), 0).of_host, ElementsAre(0, 0, 0)) << "it ends";
}

TEST(FindSites, TheShortestMeasurementOfEitherEndHolds) {
  HostRoundTrips round_trips(2);
  round_trips.add(0, 1, 40'000);
  round_trips.add(1, 0, 90);
  round_trips.add(0, 1, 0);
  EXPECT_EQ(round_trips.between(1, 0), 90U);
  EXPECT_EQ(find_sites(round_trips, kLimitUs).sites, 1U);
}

TEST(FindSites, SitesAreNumberedInTheOrderOfTheirFirstHosts) {
  HostRoundTrips round_trips = all_apart(4, 20'000);
  round_trips.add(0, 2, 100);
  round_trips.add(1, 3, 80'000);
  round_trips.add(1, 3, 100);
  EXPECT_THAT(find_sites(round_trips, kLimitUs).of_host, ElementsAre(0, 1, 0, 1));
}

// Sites, their hosts in any order, and what the kernels of both ends would have measured.
struct World {
  std::vector<std::uint32_t> site_of;
  HostRoundTrips round_trips{0};
};

World made_up_world(std::mt19937_64& random) {
  const auto uniform = [&](double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); };
  World world;
  const auto sites = static_cast<std::uint32_t>(uniform(2, 6));
  for (std::uint32_t site = 0; site < sites; ++site)
    for (auto host = static_cast<int>(uniform(1, 5)); host > 0; --host) world.site_of.push_back(site);
  std::shuffle(world.site_of.begin(), world.site_of.end(), random);
  std::vector<std::vector<double>> one_way(sites, std::vector<double>(sites));  // both directions may differ, as 5 ms and 40 ms
  for (auto& from : one_way)
    for (double& to : from) to = uniform(1'500, 40'000);
  world.round_trips = HostRoundTrips(world.site_of.size());
  for (std::size_t one = 0; one < world.site_of.size(); ++one)
    for (std::size_t other = one + 1; other < world.site_of.size(); ++other) {
      const std::uint32_t from = world.site_of[one];
      const std::uint32_t to = world.site_of[other];
      const double base = from == to ? uniform(40, 500) : one_way[from][to] + one_way[to][from];
      for (const std::size_t end : {one, other})
        for (int sample = 0; sample < 8; ++sample) {
          const double busy = uniform(0, 1) < 0.2 ? uniform(0, 30'000) : 0;  // the core had other work
          world.round_trips.add(end, one + other - end, static_cast<std::uint32_t>(base * uniform(1, 1.1) + busy));
        }
    }
  return world;
}

TEST(FindSites, AreRightInFiftyOfFiftyWorlds) {
  std::mt19937_64 random(testing::chosen_seed());
  for (int run = 0; run < 50; ++run) {
    const World world = made_up_world(random);
    const FoundSites found = find_sites(world.round_trips, kLimitUs);
    for (std::size_t one = 0; one < world.site_of.size(); ++one)
      for (std::size_t other = 0; other < one; ++other)
        ASSERT_EQ(found.of_host[one] == found.of_host[other], world.site_of[one] == world.site_of[other])
            << "run " << run << ", hosts " << one << " and " << other << ", " << world.round_trips.between(one, other) << " us";
    EXPECT_EQ(found.sites, 1 + *std::max_element(found.of_host.begin(), found.of_host.end()));
  }
}

}  // namespace
}  // namespace seto
