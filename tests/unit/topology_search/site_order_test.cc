#include "src/topology/search/site_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "tests/support/seed.h"

namespace seto {
namespace {

// Sites on a map: the cost is the distance plus a part that differs by direction.
SiteCosts random_costs(std::mt19937_64& random, std::size_t sites) {
  std::uniform_real_distribution<double> place(0, 100);
  std::vector<std::pair<double, double>> at;
  for (std::size_t i = 0; i < sites; ++i) {
    const double x = place(random);
    at.emplace_back(x, place(random));
  }
  SiteCosts costs(sites, std::vector<double>(sites));
  for (std::size_t from = 0; from < sites; ++from)
    for (std::size_t to = 0; to < sites; ++to)
      if (from != to)
        costs[from][to] = std::hypot(at[from].first - at[to].first, at[from].second - at[to].second) + place(random) / 4;
  return costs;
}

void expect_ring(const SiteOrder& order, const SiteCosts& costs) {
  ASSERT_EQ(order.sites.size(), costs.size());
  EXPECT_EQ(std::set<int>(order.sites.begin(), order.sites.end()).size(), costs.size());
  EXPECT_EQ(order.sites.front(), 0);
  double worst = 0;
  double sum = 0;
  for (std::size_t i = 0; i < order.sites.size(); ++i) {
    const auto from = static_cast<std::size_t>(order.sites[i]);
    const auto to = static_cast<std::size_t>(order.sites[(i + 1) % order.sites.size()]);
    worst = std::max(worst, costs[from][to]);
    sum += costs[from][to];
  }
  EXPECT_EQ(order.worst, worst);
  EXPECT_NEAR(order.sum, sum, 1e-9 * sum);
}

// Tries every ring.
SiteOrder by_trying_all(const SiteCosts& costs) {
  std::vector<int> sites(costs.size());
  std::iota(sites.begin(), sites.end(), 0);
  SiteOrder best;
  do {
    SiteOrder order{sites, 0, 0};
    for (std::size_t i = 0; i < sites.size(); ++i) {
      const double link = costs[static_cast<std::size_t>(sites[i])][static_cast<std::size_t>(sites[(i + 1) % sites.size()])];
      order.worst = std::max(order.worst, link);
      order.sum += link;
    }
    if (best.sites.empty() || order < best) best = order;
  } while (std::next_permutation(sites.begin() + 1, sites.end()));
  return best;
}

// No ring is better than this: each site needs a link in and a link out that cost no more, and all must reach all over them.
double lower_bound(const SiteCosts& costs) {
  std::vector<double> candidates;
  double least = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    double in = 1e300;
    double out = 1e300;
    for (std::size_t j = 0; j < costs.size(); ++j)
      if (j != i) {
        in = std::min(in, costs[j][i]);
        out = std::min(out, costs[i][j]);
        candidates.push_back(costs[i][j]);
      }
    least = std::max({least, in, out});
  }
  std::sort(candidates.begin(), candidates.end());
  const auto reached = [&](double most, bool forward) {
    std::vector<bool> seen(costs.size());
    std::vector<std::size_t> open = {0};
    seen[0] = true;
    while (!open.empty()) {
      const std::size_t at = open.back();
      open.pop_back();
      for (std::size_t to = 0; to < costs.size(); ++to)
        if (to != at && !seen[to] && (forward ? costs[at][to] : costs[to][at]) <= most) {
          seen[to] = true;
          open.push_back(to);
        }
    }
    return std::count(seen.begin(), seen.end(), true) == static_cast<std::ptrdiff_t>(costs.size());
  };
  for (const double most : candidates)
    if (most >= least && reached(most, true) && reached(most, false)) return most;
  return least;
}

TEST(SiteOrder, FewSitesNeedNoSearch) {
  EXPECT_TRUE(site_order({}).sites.empty());
  EXPECT_EQ(site_order({{0}}).sites, (std::vector<int>{0}));
  EXPECT_EQ(site_order({{0, 5}, {7, 0}}).sites, (std::vector<int>{0, 1}));
  EXPECT_EQ(site_order({{0, 5}, {7, 0}}).worst, 7);
}

TEST(SiteOrder, ThreeSitesTakeTheBetterDirection) {
  const SiteOrder order = site_order({{0, 9, 1}, {1, 0, 9}, {9, 1, 0}});
  EXPECT_EQ(order.sites, (std::vector<int>{0, 2, 1}));
  EXPECT_EQ(order.worst, 1);
}

TEST(SiteOrder, ASlowPairIsNotNeighboursInTheRing) {
  SiteCosts costs(5, std::vector<double>(5, 10));
  costs[0][1] = costs[1][0] = 80;
  costs[2][3] = 80;  // one direction only
  const SiteOrder order = site_order(costs);
  expect_ring(order, costs);
  EXPECT_EQ(order.worst, 10);
}

TEST(SiteOrder, AmongEqualWorstLinksTheShorterRingIsTaken) {
  // Site 3 can only be reached at a cost of 50; the rest of the ring should be cheap nevertheless.
  SiteCosts costs = {{0, 1, 9, 50}, {9, 0, 1, 50}, {1, 9, 0, 50}, {50, 50, 50, 0}};
  const SiteOrder order = site_order(costs);
  EXPECT_EQ(order.worst, 50);
  EXPECT_EQ(order.sum, 102);
}

TEST(SiteOrder, IsExactForSmallNumbers) {
  std::mt19937_64 random(testing::chosen_seed());
  for (std::size_t sites = 4; sites <= 7; ++sites)
    for (int i = 0; i < 8; ++i) {
      const SiteCosts costs = random_costs(random, sites);
      const SiteOrder found = site_order(costs);
      expect_ring(found, costs);
      const SiteOrder best = by_trying_all(costs);
      EXPECT_EQ(found.worst, best.worst);
      EXPECT_NEAR(found.sum, best.sum, 1e-9 * best.sum);
    }
}

// The gap of the heuristic, printed: against the exact ring where that is known, against a lower bound beyond.
TEST(SiteOrder, TheHeuristicIsCloseToTheExactRing) {
  std::mt19937_64 random(testing::chosen_seed());
  double sum = 0;
  double most = 0;
  int count = 0;
  for (std::size_t sites = 8; sites <= 12; sites += 2)
    for (int i = 0; i < 5; ++i, ++count) {
      const SiteCosts costs = random_costs(random, sites);
      const SiteOrder found = heuristic_site_order(costs);
      expect_ring(found, costs);
      const double gap = found.worst / site_order(costs).worst - 1;
      EXPECT_GE(gap, 0) << "nothing is better than the exact ring";
      sum += gap;
      most = std::max(most, gap);
    }
  std::printf("worst link of the heuristic beyond that of the exact ring: %.1f %% on average, %.1f %% at most\n",
              100 * sum / count, 100 * most);
  EXPECT_LT(sum / count, 0.05);
  EXPECT_LT(most, 0.5);
}

TEST(SiteOrder, ManySitesAreCloseToALowerBound) {
  std::mt19937_64 random(testing::chosen_seed());
  double most = 0;
  for (const std::size_t sites : {13U, 20U, 32U}) {
    const SiteCosts costs = random_costs(random, sites);
    const SiteOrder found = site_order(costs);
    expect_ring(found, costs);
    EXPECT_EQ(site_order(costs).sites, found.sites) << "all ranks need the same ring";
    most = std::max(most, found.worst / lower_bound(costs) - 1);
    EXPECT_GE(found.worst, lower_bound(costs));
  }
  std::printf("worst link of 13 to 32 sites beyond a lower bound: %.1f %% at most\n", 100 * most);
  EXPECT_LT(most, 1.0);
}

}  // namespace
}  // namespace seto
