// Reported rates as rank 0 uses them, agreed ones as choice uses them, and the messages in between.

#include "src/core/choice/site_rates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "src/core/choice/cost_model.h"
#include "src/core/choice/rate_messages.h"
#include "tests/support/seed.h"

namespace seto {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

Sites far_sites(std::uint32_t count) {
  Sites sites;
  sites.links = SiteLinks(count);
  for (std::uint32_t from = 0; from < count; ++from) {
    sites.of_rank.push_back(from);
    for (std::uint32_t to = 0; to < count; ++to)
      if (from != to)
        (void)sites.links.add(
            {0, from, to, {.medium = LinkMedium::wide_area, .round_trip_s = 60e-3, .source = FactSource::measured}});
  }
  return sites;
}

TEST(SiteRates, AreUnknownUntilOneIsKnown) {
  const Sites sites = far_sites(3);
  EXPECT_EQ(with_rates(sites, {}).links, sites.links);
  EXPECT_EQ(with_rates(sites, {{7, 1, 1e6}, {1, 1, 1e6}, {0, 1, -4}}).links, sites.links) << "no such links";
}

TEST(SiteRates, FillTheOtherDirectionAndThenTheLowest) {
  const Sites sites = with_rates(far_sites(3), {{0, 1, 50e6}, {1, 2, 20e6}});
  EXPECT_EQ(sites.links.between(0, 1).bytes_per_second, 50e6);
  EXPECT_EQ(sites.links.between(1, 0).bytes_per_second, 50e6);
  EXPECT_EQ(sites.links.between(2, 0).bytes_per_second, 20e6);
  EXPECT_EQ(sites.links.worst().bytes_per_second, 20e6);
  EXPECT_EQ(sites.links.worst().round_trip_s, 60e-3);
}

TEST(SiteRates, LeaveWhatAFileStatesOfOtherLinks) {
  Sites sites = far_sites(3);
  (void)sites.links.add({0, 1, 2, {.medium = LinkMedium::wide_area, .bytes_per_second = 80e6}});
  sites.link_rates_of_file = true;
  const Sites known = with_rates(sites, {{0, 1, 50e6}});
  EXPECT_EQ(known.links.between(1, 2).bytes_per_second, 80e6);
  EXPECT_EQ(known.links.between(2, 1).bytes_per_second, 50e6) << "neither stated nor measured";
  EXPECT_EQ(with_rates(sites, {{1, 2, 30e6}}).links.between(1, 2).bytes_per_second, 30e6) << "until it is measured";
}

TEST(SiteRates, ReplaceEarlierOnesAlsoByLower) {
  const Sites before = with_rates(far_sites(2), {{0, 1, 100e6}});
  EXPECT_EQ(with_rates(before, {{0, 1, 50e6}}).links.worst().bytes_per_second, 50e6);
}

TEST(SiteRates, AreWhatTheCostModelFollowsUnlessSitesStateTheirs) {
  CostModel costs;
  costs.source = CostSource::measured;
  Sites sites = far_sites(2);
  costs.use(sites);
  EXPECT_EQ(costs.world.bytes_per_second, kAssumedBytesPerSecond);
  const std::uint32_t assumed = costs.links_digest;
  costs.use(with_rates(sites, {{0, 1, 50e6}}));
  EXPECT_EQ(costs.world.bytes_per_second, 50e6);
  EXPECT_NE(costs.links_digest, assumed) << "ranks that know different rates must not run one operation";
  sites.rates = {{25e6, 25e6}, {30e6, 30e6}};
  costs.use(with_rates(sites, {{0, 1, 50e6}}));
  EXPECT_EQ(costs.world.bytes_per_second, 25e6);
}

// The links of four sites, all but one of which carry 100 MB/s.
SiteLinkRates with_a_slow_link(std::uint32_t from, std::uint32_t to) {
  SiteLinkRates rates;
  for (std::uint32_t one = 0; one < 4; ++one)
    for (std::uint32_t other = 0; other < 4; ++other)
      if (one != other) rates.push_back({one, other, one == from && other == to ? 10e6 : 100e6});
  return rates;
}

// In each version all ranks compute the ring from the rates of that version.
TEST(SiteRates, DecideTheOrderInWhichARingPassesSites) {
  CostModel costs;
  costs.source = CostSource::measured;
  costs.use(with_rates(far_sites(2), {{0, 1, 100e6}}));
  EXPECT_TRUE(costs.ring.order.empty()) << "two sites have one order";
  const Sites sites = far_sites(4);
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 2}, {3, 0}}) {
    costs.use(with_rates(sites, with_a_slow_link(static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to))));
    const std::vector<int>& order = costs.ring.order;
    ASSERT_EQ(order.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_FALSE(order[i] == from && order[(i + 1) % 4] == to) << from << " > " << to;
    EXPECT_EQ(costs.ring.bytes_per_second, 100e6);
    EXPECT_EQ(costs.ring.fastest_link_rate, 100e6);
    EXPECT_NEAR(costs.ring.latency_seconds, 30e-3, 1e-9);
    EXPECT_EQ(costs.world.bytes_per_second, 10e6) << "other plans use the slow link, too";
  }
}

TEST(SiteRates, OfAPartAreThoseOfItsSitesInTheParent) {
  const InheritedRates parent{3, {{0, 2, 10e6}, {2, 0, 20e6}, {1, 2, 30e6}}, {2, 0}};
  const SiteLinkRates wanted{{0, 1, 20e6}, {1, 0, 10e6}};
  EXPECT_EQ(rates_of_part(parent, far_sites(2)), wanted);
  EXPECT_TRUE(rates_of_part({3, parent.rates, {}}, far_sites(2)).empty());
}

TEST(RateReports, FreshOnesOfTheRanksOfASiteAreAddedUp) {
  RateReports reports(2, 4);
  reports.add(0, {0, 1, 40e6}, false, 0);
  reports.add(1, {0, 1, 60e6}, false, 0);
  EXPECT_EQ(reports.fresh(kSecond), (SiteLinkRates{{0, 1, 100e6}}));
  reports.add(2, {1, 0, 50e6}, false, kSecond);
  EXPECT_EQ(reports.fresh(kSecond), (SiteLinkRates{{0, 1, 100e6}, {1, 0, 50e6}})) << "each direction alone";
  reports.add(0, {0, 1, 30e6}, false, 4 * kSecond);
  EXPECT_EQ(reports.fresh(7 * kSecond), (SiteLinkRates{{0, 1, 30e6}})) << "rank 1 sends no more";
}

TEST(RateReports, WhatARankCarriedAtLeastIsAddedToWhatOthersMeasured) {
  RateReports reports(2, 4);
  reports.add(0, {0, 1, 20e6}, true, 0);
  reports.add(1, {0, 1, 20e6}, true, 0);
  EXPECT_TRUE(reports.fresh(0).empty()) << "a link that nothing has filled may carry more";
  reports.add(1, {0, 1, 24e6}, false, kSecond);
  EXPECT_EQ(reports.fresh(kSecond), (SiteLinkRates{{0, 1, 44e6}}));
  reports.add(1, {0, 1, 22e6}, true, 2 * kSecond);
  EXPECT_TRUE(reports.fresh(2 * kSecond).empty()) << "the latest report of a rank holds";
}

TEST(RateReports, TheShortestRoundTripOfTheFreshOnesIsThatOfTheLink) {
  RateReports reports(2, 4);
  reports.add(0, {0, 1, 40e6, 61e-3}, false, 0);
  reports.add(1, {0, 1, 40e6, 60e-3}, false, 0);
  reports.add(2, {0, 1, 40e6}, false, 0);
  EXPECT_EQ(reports.fresh(0), (SiteLinkRates{{0, 1, 120e6, 60e-3}})) << "others saw their own queue, or none knows";
}

// Two ranks of a site share a link of 100, which becomes one of 50: no version says 75.
TEST(RateReports, APairWaitsUntilEachOfItsRanksHasReportedSinceAChange) {
  RateReports reports(2, 4);
  reports.add(0, {0, 1, 50e6}, false, 0);
  reports.add(1, {0, 1, 50e6}, false, 0);
  EXPECT_EQ(reports.settled(0), (SiteLinkRates{{0, 1, 100e6}}));
  reports.add(0, {0, 1, 25e6}, false, 2 * kSecond);
  EXPECT_TRUE(reports.settled(2 * kSecond).empty()) << "the report of rank 1 is from before the change";
  reports.add(0, {0, 1, 24e6}, false, 3 * kSecond);
  EXPECT_TRUE(reports.settled(3 * kSecond).empty()) << "it still is";
  reports.add(1, {0, 1, 25e6}, false, 3 * kSecond);
  EXPECT_EQ(reports.settled(3 * kSecond), (SiteLinkRates{{0, 1, 49e6}}));
  reports.add(0, {0, 1, 20e6}, false, 5 * kSecond);
  EXPECT_TRUE(reports.settled(5 * kSecond).empty()) << "a later change begins anew";
  EXPECT_EQ(reports.settled(8 * kSecond + 1), (SiteLinkRates{{0, 1, 20e6}})) << "a rank that is silent counts no more";
}

// A first part of a change may be too small to differ from what is in force.
TEST(RateReports, AChangeThatComesInPartsIsKnownWithTheLastPart) {
  RateReports reports(2, 4);
  const SiteLinkRates in_force{{0, 1, 100e6}};
  for (const Rank rank : {0, 1, 2, 3}) reports.add(rank, {0, 1, 25e6}, false, 0);
  for (const Rank rank : {0, 1, 2}) {
    reports.add(rank, {0, 1, 20e6}, false, 2 * kSecond + static_cast<std::uint64_t>(rank));
    EXPECT_TRUE(proposal(in_force, reports.settled(2 * kSecond + 3)).empty()) << rank;
  }
  reports.add(3, {0, 1, 19e6}, false, 2 * kSecond + 3);
  EXPECT_EQ(proposal(in_force, reports.settled(2 * kSecond + 3)), (SiteLinkRates{{0, 1, 79e6}}));
}

TEST(RateReports, NonsenseIsIgnored) {
  RateReports reports(2, 2);
  for (const double seconds : {-1.0, 11.0, std::nan("")}) reports.add(0, {0, 1, 1e6, seconds}, false, 0);
  for (const double rate : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    reports.add(0, {0, 1, rate}, false, 0);
  reports.add(2, {0, 1, 1e6}, false, 0);
  reports.add(-1, {0, 1, 1e6}, false, 0);
  reports.add(0, {0, 2, 1e6}, false, 0);
  reports.add(0, {1, 1, 1e6}, false, 0);
  EXPECT_TRUE(reports.fresh(0).empty());
}

// The rate that rank 0 has in force after these reports, one after another.
struct InForce {
  double rate = 0;
  int versions = 0;
};
InForce in_force_after(const std::vector<double>& series) {
  RateReports reports(2, 2);
  SiteLinkRates rates;
  InForce result;
  std::uint64_t now = 0;
  for (const double rate : series) {
    reports.add(1, {0, 1, rate}, false, now += kSecond / 4);
    if (const SiteLinkRates wanted = proposal(rates, reports.settled(now)); !wanted.empty()) {
      rates = wanted;
      ++result.versions;
    }
  }
  result.rate = rates.front().bytes_per_second;
  return result;
}

// Reports of a link of 1 Gbit/s while its sockets open their windows, and afterwards.
TEST(Proposal, FollowsARateThatStillRises) {
  const InForce late = in_force_after({98e6, 109e6, 118e6, 117e6, 119e6, 116e6, 119e6, 118e6});
  EXPECT_EQ(late.rate, 109e6) << "a tenth below the last ones, not a fifth";
  EXPECT_EQ(late.versions, 2);
  const InForce early = in_force_after({20e6, 44e6, 80e6, 102e6, 114e6, 118e6, 119e6, 118e6, 117e6});
  EXPECT_GE(1.1 * early.rate, 119e6);
  EXPECT_LE(early.versions, 5);
}

TEST(Proposal, IsMadeOnceWhereReportsVaryByLessThanAQuarter) {
  const InForce steady = in_force_after({118e6, 101e6, 119e6, 98e6, 122e6, 100e6, 118e6, 97e6});
  EXPECT_EQ(steady.rate, 118e6);
  EXPECT_EQ(steady.versions, 1);
  const InForce higher = in_force_after({100e6, 118e6, 97e6, 118e6, 96e6, 117e6});
  EXPECT_EQ(higher.rate, 118e6);
  EXPECT_EQ(higher.versions, 2) << "from the higher one all others are less than a quarter away";
}

TEST(Proposal, IsMadeForANewRateForARiseOfATenthAndAFallOfAQuarter) {
  EXPECT_EQ(proposal({}, {{0, 1, 1e6}}), (SiteLinkRates{{0, 1, 1e6}}));
  const SiteLinkRates in_force{{0, 1, 100e6}, {1, 0, 100e6}};
  EXPECT_TRUE(proposal(in_force, {}).empty());
  EXPECT_TRUE(proposal(in_force, {{0, 1, 109e6}, {1, 0, 81e6}}).empty());
  EXPECT_EQ(proposal(in_force, {{0, 1, 111e6}}), (SiteLinkRates{{0, 1, 111e6}, {1, 0, 100e6}}));
  EXPECT_EQ(proposal(in_force, {{1, 0, 79e6}}), (SiteLinkRates{{0, 1, 100e6}, {1, 0, 79e6}}));
}

TEST(Proposal, IsMadeForARoundTripThatChangesByAQuarter) {
  const SiteLinkRates in_force{{0, 1, 100e6, 60e-3}};
  EXPECT_TRUE(proposal(in_force, {{0, 1, 100e6, 74e-3}}).empty());
  EXPECT_TRUE(proposal(in_force, {{0, 1, 100e6}}).empty()) << "an unknown one changes nothing";
  EXPECT_EQ(proposal(in_force, {{0, 1, 101e6, 120e-3}}), (SiteLinkRates{{0, 1, 101e6, 120e-3}}));
  EXPECT_EQ(proposal(in_force, {{0, 1, 100e6, 40e-3}}), (SiteLinkRates{{0, 1, 100e6, 40e-3}}));
  EXPECT_EQ(proposal(in_force, {{0, 1, 50e6}}), (SiteLinkRates{{0, 1, 50e6, 60e-3}})) << "of the version before";
}

TEST(SiteRates, ARoundTripOfTrafficReplacesTheFirstOne) {
  const Sites sites = with_rates(far_sites(2), {{0, 1, 50e6, 90e-3}});
  EXPECT_EQ(sites.links.between(0, 1).round_trip_s, 90e-3);
  EXPECT_EQ(sites.links.between(1, 0).round_trip_s, 90e-3) << "it is that of both directions";
  CostModel costs;
  costs.source = CostSource::measured;
  costs.use(sites);
  EXPECT_EQ(costs.world.latency_seconds, 45e-3);
  EXPECT_EQ(with_rates(far_sites(2), {{0, 1, 50e6}}).links.between(0, 1).round_trip_s, 60e-3);
}

TEST(RateMessages, AreReadAsTheyWereWritten) {
  const RateMessage message{RateMessageKind::commit, 7, 12'345, {{0, 1, 1.5e6, 60e-3}, {1, 0, 2.5e6}}};
  const Result<RateMessage> read = rate_message_in(encoded(message));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().kind, message.kind);
  EXPECT_EQ(read.value().version, 7U);
  EXPECT_EQ(read.value().operation, 12'345U);
  EXPECT_EQ(read.value().rates, message.rates);
}

TEST(RateMessages, MayHoldNoRates) {
  const Result<RateMessage> read = rate_message_in(encoded({RateMessageKind::answer, 3, 99, {}}));
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read.value().operation, 99U);
  EXPECT_TRUE(read.value().rates.empty());
}

TEST(RateMessages, HoldTheLowestRatesOfVeryManySites) {
  RateMessage message;
  for (std::uint32_t i = 0; i < 1'000; ++i) message.rates.push_back({i, i + 1, 1e9 - i});
  const std::string bytes = encoded(message);
  EXPECT_LT(bytes.size(), 4'000U);
  const Result<RateMessage> read = rate_message_in(bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().rates.size(), kMostRatesOfMessage);
  EXPECT_EQ(read.value().rates.front().from, 999U);
  EXPECT_EQ(read.value().rates, lowest_that_fit(message.rates)) << "the rank that commits must use no others";
}

TEST(RateMessages, AnyBytesAreReadOrRefused) {
  std::mt19937_64 random(testing::chosen_seed());
  const std::string valid = encoded({RateMessageKind::report, 1, 2, {{0, 1, 1e6}, {1, 0, 2e6}}});
  for (int run = 0; run < 20'000; ++run) {
    std::string bytes = valid.substr(0, random() % (valid.size() + 1));
    for (int change = 0; change < 3 && !bytes.empty(); ++change) bytes[random() % bytes.size()] = static_cast<char>(random());
    const Result<RateMessage> read = rate_message_in(bytes);
    if (read.ok()) (void)with_rates(far_sites(2), read.value().rates);
  }
  EXPECT_FALSE(rate_message_in("").ok());
}

}  // namespace
}  // namespace seto
