// Shares of a buffer that the members of the widest tier own, against bounds and exhaustive search, and in the plans themselves.

#include "algorithms/shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include "algorithms/algorithm.h"
#include "algorithms/holders.h"
#include "tests/support/seed.h"
#include "tests/support/uneven_tiers.h"

namespace seto {
namespace {

std::vector<PortRates> rates_of(std::initializer_list<double> both_ways) {
  std::vector<PortRates> rates;
  for (const double rate : both_ways) rates.push_back({rate, rate});
  return rates;
}

std::vector<PortRates> random_rates(std::mt19937_64& random, std::size_t members) {
  std::vector<PortRates> rates;
  for (std::size_t i = 0; i < members; ++i)
    rates.push_back({static_cast<double>(1 + random() % 16), static_cast<double>(1 + random() % 16)});
  return rates;
}

// No shares are faster: any set of members has to carry its work, and all that the others cannot own.
double bound_of(const Shares& shares) {
  double bound = shares.least_seconds;
  for (unsigned set = 1; set < 1U << shares.limits.size(); ++set) {
    double work = shares.growth;
    double rate = 0;
    for (std::size_t i = 0; i < shares.limits.size(); ++i)
      if ((set >> i & 1U) != 0) {
        work += shares.limits[i].fixed;
        rate += shares.limits[i].rate;
      }
    if (set + 1 == 1U << shares.limits.size()) bound = std::max(bound, work / rate);
  }
  return bound;
}

// The best shares in steps of 1 / parts.
double searched(const Shares& shares, std::vector<double> cut, int left, int parts) {
  if (cut.size() + 1 == shares.limits.size()) {
    cut.push_back(static_cast<double>(left) / parts);
    return shares.seconds(cut);
  }
  double best = std::numeric_limits<double>::infinity();
  for (int own = 0; own <= left; ++own) {
    std::vector<double> next = cut;
    next.push_back(static_cast<double>(own) / parts);
    best = std::min(best, searched(shares, std::move(next), left - own, parts));
  }
  return best;
}

TEST(Shares, GoWhereCapacityIsToSpare) {
  const Shares shares = shares_of_sums(rates_of({1, 2, 4}));
  EXPECT_EQ(shares.filled(), (std::vector<double>{0, 0.25, 0.75})) << "the slowest site only sends its own and receives the sum";
  EXPECT_EQ(shares.seconds(shares.filled()), 1);
  EXPECT_NEAR(shares.seconds({1.0 / 3, 1.0 / 3, 1.0 / 3}), 4.0 / 3, 1e-12) << "even shares";
  EXPECT_NEAR(shares.seconds({1.0 / 7, 2.0 / 7, 4.0 / 7}), 8.0 / 7, 1e-12) << "in proportion to the rates";
}

TEST(Shares, OfEqualRatesAreEven) {
  for (const std::size_t members : {3U, 4U, 7U}) {
    const std::vector<PortRates> rates(members, PortRates{5, 5});
    for (const double share : shares_of_sums(rates).filled()) EXPECT_NEAR(share, 1.0 / static_cast<double>(members), 1e-12);
  }
}

TEST(Shares, AreTheSlowerOfUpAndDown) {
  const std::vector<PortRates> rates = {{1, 8}, {8, 2}, {4, 4}};
  EXPECT_EQ(shares_of_sums(rates).filled(), shares_of_sums(rates_of({1, 2, 4})).filled());
}

TEST(Shares, LetABroadcastLeaveTheRootOnce) {
  const Shares shares = shares_from_root(rates_of({1, 1, 1}), 0);
  EXPECT_EQ(shares.filled(), (std::vector<double>{0, 0.5, 0.5}));
  EXPECT_EQ(shares.seconds(shares.filled()), 1);
  EXPECT_EQ(shares.seconds({1, 0, 0}), 2) << "the root's site sends everything to both others";
}

// Against exhaustive search over a grid, and against the bound that no shares can pass.
TEST(Shares, AreTheBest) {
  std::mt19937_64 random(seto::testing::chosen_seed());
  for (int round = 0; round < 300; ++round) {
    const std::size_t members = 3 + random() % 2;
    const std::vector<PortRates> rates = random_rates(random, members);
    const bool is_rooted = round % 2 == 1;
    const Shares shares = is_rooted ? shares_from_root(rates, random() % members) : shares_of_sums(rates);
    const std::vector<double> filled = shares.filled();
    EXPECT_NEAR(std::accumulate(filled.begin(), filled.end(), 0.0), 1, 1e-12);
    for (const double share : filled) EXPECT_GE(share, 0);
    const double seconds = shares.seconds(filled);
    EXPECT_GE(seconds, bound_of(shares) - 1e-12);
    EXPECT_LE(seconds, searched(shares, {}, members == 3 ? 60 : 24, members == 3 ? 60 : 24) + 1e-12);
  }
}

// The bound of shares.h, for the last cut that is tried: the best one is no worse.
double bound_of_cut(const Shares& shares, const Tiers& tiers, std::uint32_t least) {
  const std::vector<double> filled = shares.filled();
  const double ideal = shares.seconds(filled);
  double bound = kNearlyFilled * ideal;
  for (std::size_t i = 0; i < filled.size(); ++i) {
    if (filled[i] == 0) continue;
    const double more = (filled[i] + 1.0 * tiers.ranks_of_member(i) / tiers.ranks()) / (2.0 * (least + kCutsTried - 1) - 1);
    bound = std::max(bound, ideal + shares.growth * more / shares.limits[i].rate);
  }
  return bound;
}

TEST(Shares, BecomeChunksThatAreNearlyAsGood) {
  std::mt19937_64 random(seto::testing::chosen_seed());
  for (int round = 0; round < 200; ++round) {
    const int ranks = 3 + static_cast<int>(random() % 40);
    const std::vector<Home> homes = support::random_homes(ranks, random);
    const Tiers tiers = support::with_random_rates(Tiers::of(homes), random);
    if (tiers.rates().size() < 3) continue;
    SCOPED_TRACE("nodes of " + support::text_of(homes));
    const std::vector<std::uint32_t> chunks = Holders::chunks_of_sums(tiers);
    const double all = Holders::total(tiers, chunks);
    std::vector<double> cut;
    for (std::size_t i = 0; i < chunks.size(); ++i) cut.push_back(chunks[i] * tiers.ranks_of_member(i) / all);
    const Shares shares = shares_of_sums(tiers.rates());
    const std::uint32_t least = Holders::pieces_for(tiers);
    EXPECT_LE(shares.seconds(cut), bound_of_cut(shares, tiers, least) * (1 + 1e-12));
    EXPECT_LE(all, (least + kCutsTried - 0.5) * tiers.ranks());
  }
}

// The parts that cross the links of each member in a plan.
std::vector<PortRates> crossing(const Algorithm& algorithm, const Shape& shape, const Tiers& tiers) {
  std::vector<PortRates> bytes(tiers.rates().size());
  const auto member_of = [&](Rank rank) { return static_cast<std::size_t>(tiers.member_of(rank)); };
  for (const Program& program : build_plan(algorithm, shape, tiers, {}).programs)
    for (const Channel& channel : program.channels) {
      if (channel.sender != program.rank) continue;
      for (const Rank receiver : program.receivers_of(channel)) {
        if (member_of(receiver) == member_of(program.rank)) continue;
        bytes[member_of(program.rank)].up += static_cast<double>(channel.count) / shape.pieces;
        bytes[member_of(receiver)].down += static_cast<double>(channel.count) / shape.pieces;
      }
    }
  return bytes;
}

TEST(Shares, DecideWhatCrossesTheLinksOfASite) {
  Tiers tiers = Tiers::of({{0, 0}, {1, 0}, {2, 1}, {2, 1}, {3, 2}, {3, 2}, {4, 2}});
  tiers.take_rates(rates_of({1, 2, 4}));
  ASSERT_EQ(tiers.rates().size(), 3U);
  const Algorithm& algorithm = *find_algorithm("hierarchical", Collective::all_reduce);
  Shape shape{Collective::all_reduce, tiers.ranks(), 0, 1, Finish::none};
  shape.pieces = algorithm.pieces(shape, tiers);
  const std::vector<PortRates> bytes = crossing(algorithm, shape, tiers);
  EXPECT_NEAR(bytes[0].up, 1, 1e-9) << "the slowest site owns nothing";
  EXPECT_NEAR(bytes[0].down, 1, 1e-9);
  // 4 chunks on average are 0, 3.5 and 7 of each rank: of 29 chunks site 1 owns 2 x 4 and site 2 owns 3 x 7.
  EXPECT_NEAR(bytes[1].up, 1 + 8.0 / 29, 1e-9);
  EXPECT_NEAR(bytes[2].up, 1 + 21.0 / 29, 1e-9);
}

TEST(Shares, OfSitesOfOneRankEachNeedRates) {
  Tiers tiers = made_up_tiers(3, 3, 3).value();
  ASSERT_EQ(tiers.count(), 1);
  for (const Algorithm& algorithm : algorithms()) {
    if (!support::follows_tiers(algorithm.name)) continue;
    Shape shape{algorithm.collective, 3, 0, 1, Finish::none};
    EXPECT_EQ(algorithm.refuses(shape, made_up_tiers(3, 3, 3).value()), "there is one tier");
  }
  tiers.take_rates(rates_of({1, 2, 4}));
  const Algorithm& algorithm = *find_algorithm("hierarchical", Collective::all_reduce);
  Shape shape{Collective::all_reduce, 3, 0, 1, Finish::none};
  EXPECT_EQ(algorithm.refuses(shape, tiers), "");
  shape.pieces = algorithm.pieces(shape, tiers);
  EXPECT_EQ(crossing(algorithm, shape, tiers)[0].up, 1);
  EXPECT_NEAR(algorithm.cost_form(tiers).tiers[0].shared, 1, 1e-9);
}

// The forms state what crosses the busiest links of a site, for every plan that follows the tiers.
TEST(Shares, AreInTheCostForms) {
  std::mt19937_64 random(seto::testing::chosen_seed());
  for (int round = 0; round < 60; ++round) {
    const std::vector<Home> homes = support::random_homes(3 + static_cast<int>(random() % 14), random);
    const Tiers tiers = support::with_random_rates(Tiers::of(homes), random);
    if (tiers.rates().empty()) continue;
    for (const Algorithm& algorithm : algorithms()) {
      Shape shape{algorithm.collective, tiers.ranks(), 0, 1, Finish::none};
      if (!support::follows_tiers(algorithm.name) || !algorithm.refuses(shape, tiers).empty()) continue;
      SCOPED_TRACE(std::string(algorithm.name) + " " + std::string(name_of(algorithm.collective)) + ", nodes of " +
                   support::text_of(homes));
      const bool is_rooted = algorithm.collective == Collective::broadcast || algorithm.collective == Collective::reduce;
      double most = 0;
      for (shape.root = 0; shape.root < (is_rooted ? tiers.ranks() : 1); ++shape.root) {
        shape.pieces = algorithm.pieces(shape, tiers);
        const std::vector<PortRates> bytes = crossing(algorithm, shape, tiers);
        most = std::max(most, shared_by_members(tiers, [&](std::size_t i) { return bytes[i]; }));
      }
      EXPECT_NEAR(algorithm.cost_form(tiers).tiers[static_cast<std::size_t>(tiers.count() - 1)].shared / most, 1, 1e-9);
    }
  }
}

TEST(Shares, AreAPureFunctionOfAgreedRates) {
  Tiers one = Tiers::of({{0, 0}, {1, 1}, {2, 2}});
  Tiers other = one;
  EXPECT_EQ(one.digest(), other.digest());
  one.take_rates(rates_of({1, 2, 4}));
  EXPECT_NE(one.digest(), other.digest());
  other.take_rates(rates_of({1, 2, 3}));
  EXPECT_NE(one.digest(), other.digest());
  other.take_rates(rates_of({1, 2, 0}));
  EXPECT_TRUE(other.rates().empty()) << "the rate of the last site is not known";
  other.take_rates(rates_of({1, 2}));
  EXPECT_TRUE(other.rates().empty()) << "there are three sites";
  Tiers nodes = Tiers::of({{0, 0}, {1, 0}});
  nodes.take_rates(rates_of({1, 2}));
  EXPECT_TRUE(nodes.rates().empty()) << "there is one site";
}

}  // namespace
}  // namespace seto
