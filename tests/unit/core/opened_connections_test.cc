#include "src/core/connect/opened_connections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/base/config.h"

namespace seto {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Shape {
  std::size_t hosts = 1;
  std::size_t ranks_of_host = 1;
  std::size_t sites = 0;  // stated; 0: none
};

std::vector<RankAnnouncement> ranks_of(const Shape& shape, Connect connect = Connect::automatic) {
  std::vector<RankAnnouncement> all;
  for (std::size_t host = 0; host < shape.hosts; ++host)
    for (std::size_t i = 0; i < shape.ranks_of_host; ++i) {
      RankAnnouncement one;
      one.place = {"host " + std::to_string(host), "process", all.size()};
      if (shape.sites > 0) one.site = std::to_string(host * shape.sites / shape.hosts);
      one.connect = static_cast<std::uint64_t>(connect);
      all.push_back(one);
    }
  return all;
}

bool on_first_use(const std::vector<RankAnnouncement>& all) {
  return opens_on_first_use(all, RankSites::of(all, false).value()).value();
}

TEST(OpenedConnections, AllOfThemAtInitWhereTheyAreFew) {
  EXPECT_FALSE(on_first_use(ranks_of({1, 1})));
  EXPECT_FALSE(on_first_use(ranks_of({1, 200}))) << "one node has no sockets";
  EXPECT_FALSE(on_first_use(ranks_of({129, 1})));
  EXPECT_TRUE(on_first_use(ranks_of({130, 1})));
  EXPECT_FALSE(on_first_use(ranks_of({17, 8}))) << "128 ranks beyond the own host";
  EXPECT_TRUE(on_first_use(ranks_of({18, 8})));
}

TEST(OpenedConnections, ARankOfAnotherSiteCountsEightTimes) {
  EXPECT_FALSE(on_first_use(ranks_of({28, 1, 2}))) << "13 + 8 * 14 = 125";
  EXPECT_TRUE(on_first_use(ranks_of({30, 1, 2}))) << "14 + 8 * 15 = 134";
}

TEST(OpenedConnections, AreAsTheSettingSays) {
  EXPECT_TRUE(on_first_use(ranks_of({2, 1}, Connect::used)));
  EXPECT_FALSE(on_first_use(ranks_of({1000, 1}, Connect::all)));
}

TEST(OpenedConnections, TheSettingMustBeTheSameOnAllRanks) {
  auto all = ranks_of({3, 1}, Connect::used);
  all[2].connect = static_cast<std::uint64_t>(Connect::all);
  const Result<bool> result = opens_on_first_use(all, RankSites::of(all, false).value());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::invalid_usage);
  EXPECT_THAT(std::string(result.status().text()), HasSubstr("SETO_CONNECT is 'used' on rank 0 and 'all' on rank 2"));
  all[2].connect = 77;
  EXPECT_FALSE(opens_on_first_use(all, RankSites::of(all, false).value()).ok());
}

Relays relays(const std::vector<RankAnnouncement>& all, bool on_first_use = true) {
  return relays_control(all, RankSites::of(all, false).value(), on_first_use).value().relays;
}

// Each host is a process.
std::vector<RankAnnouncement> relaying(const Shape& shape, ControlRelay relay) {
  std::vector<RankAnnouncement> all = ranks_of(shape);
  for (RankAnnouncement& one : all) {
    one.place.process = "process of " + one.place.host;
    one.relay = static_cast<std::uint64_t>(relay);
    one.near_us = 1'000;
  }
  return all;
}

TEST(ControlRelay, IsForProcessesOfOneHostThatOpenOnFirstUse) {
  EXPECT_EQ(relays(relaying({100, 2, 1}, ControlRelay::on)), Relays::yes);
  EXPECT_EQ(relays(relaying({100, 2, 1}, ControlRelay::on), false), Relays::no);
  EXPECT_EQ(relays(relaying({100, 2}, ControlRelay::on)), Relays::if_one_site) << "its sites are to be found";
  EXPECT_EQ(relays(relaying({100, 2, 1}, ControlRelay::off)), Relays::no);
  std::vector<RankAnnouncement> all = relaying({4, 2, 1}, ControlRelay::on);
  all[1].place.process = all[2].place.process;
  EXPECT_EQ(relays(all), Relays::no) << "one process on two hosts";
  all = relaying({4, 2}, ControlRelay::on);
  for (RankAnnouncement& one : all) one.near_us = 0;
  EXPECT_EQ(relays(all), Relays::yes) << "no sites are to be found";
}

TEST(ControlRelay, IsAutomaticWhereManyProcessesAreOfOneSite) {
  const auto automatic = [](const Shape& shape) { return relaying(shape, ControlRelay::automatic); };
  EXPECT_EQ(relays(automatic({49, 1, 1})), Relays::yes);
  EXPECT_EQ(relays(automatic({48, 1, 1})), Relays::no) << "few";
  EXPECT_EQ(relays(automatic({48, 8, 1})), Relays::no) << "ranks of one process share its channels";
  EXPECT_EQ(relays(automatic({49, 1})), Relays::if_one_site) << "its sites are to be found";
  EXPECT_EQ(relays(automatic({48, 1})), Relays::no);
  EXPECT_EQ(relays(automatic({100, 2, 2})), Relays::no) << "two sites";
  EXPECT_EQ(relays(relaying({100, 2, 2}, ControlRelay::on)), Relays::yes) << "where the user says so";
  auto all = automatic({49, 2, 1});
  EXPECT_EQ(relays(all), Relays::yes);
  EXPECT_EQ(relays(all, false), Relays::no) << "SETO_CONNECT=all, or few sockets";
  all[97].site = "another";
  EXPECT_EQ(relays(all), Relays::no) << "one host has ranks of two sites";
  all[97].site = "";
  EXPECT_EQ(relays(all), Relays::no) << "one rank states no site";
  all = automatic({60, 2, 1});
  for (std::size_t rank = 0; rank < all.size(); ++rank) all[rank].place.process = "process " + std::to_string(rank / 4);
  EXPECT_EQ(relays(all), Relays::no) << "processes on two hosts";
}

// No rank would know whether the hosts are near each other. A rank that finds no sites would also run other rounds.
TEST(ControlRelay, IsNotAutomaticWhereSitesAreNeitherStatedNorFound) {
  auto all = relaying({64, 1}, ControlRelay::automatic);
  all[63].near_us = 0;
  EXPECT_EQ(relays(all), Relays::no);
  for (RankAnnouncement& one : all) one.near_us = 0;
  EXPECT_EQ(relays_control(all, RankSites::of(all, true).value(), true).value().relays, Relays::no) << "SETO_DETERMINISTIC";
  for (RankAnnouncement& one : all) one.site = "here";
  EXPECT_EQ(relays_control(all, RankSites::of(all, true).value(), true).value().relays, Relays::yes);
}

TEST(ControlRelay, IsWorthALineWhereProcessesAreMany) {
  const auto choice = [](const Shape& shape, ControlRelay relay) {
    const auto all = relaying(shape, relay);
    return relays_control(all, RankSites::of(all, false).value(), true).value();
  };
  EXPECT_FALSE(choice({48, 1, 1}, ControlRelay::automatic).tell);
  EXPECT_FALSE(choice({64, 1, 1}, ControlRelay::off).tell);
  EXPECT_TRUE(choice({3, 1, 1}, ControlRelay::on).tell);
  EXPECT_TRUE(choice({64, 1, 2}, ControlRelay::automatic).tell);
  EXPECT_STREQ(choice({64, 1, 2}, ControlRelay::automatic).why, "there are several sites");
  EXPECT_EQ(choice({64, 3, 1}, ControlRelay::automatic).processes, 64U);
}

// Jobs in which only some ranks had it off were made before it was automatic.
TEST(ControlRelay, OffWinsOverAutomatic) {
  auto all = relaying({64, 1, 1}, ControlRelay::automatic);
  all[2].relay = static_cast<std::uint64_t>(ControlRelay::off);
  EXPECT_EQ(relays(all), Relays::no);
  for (RankAnnouncement& one : all) one.relay = static_cast<std::uint64_t>(ControlRelay::off);
  all[0].relay = static_cast<std::uint64_t>(ControlRelay::automatic);
  EXPECT_EQ(relays(all), Relays::no);
}

TEST(ControlRelay, OnMustBeSetOnAllRanks) {
  auto all = relaying({3, 1}, ControlRelay::on);
  all[2].relay = static_cast<std::uint64_t>(ControlRelay::off);
  Result<RelayChoice> result = relays_control(all, RankSites::of(all, false).value(), true);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(std::string(result.status().text()), HasSubstr("SETO_CONTROL_RELAY is 'on' on rank 0 and 'off' on rank 2"));
  all[2].relay = static_cast<std::uint64_t>(ControlRelay::automatic);
  EXPECT_FALSE(relays_control(all, RankSites::of(all, false).value(), true).ok());
  all[2].relay = 77;
  EXPECT_FALSE(relays_control(all, RankSites::of(all, false).value(), true).ok());
  all = relaying({3, 1}, ControlRelay::automatic);
  all[2].relay = 77;
  EXPECT_FALSE(relays_control(all, RankSites::of(all, false).value(), true).ok());
}

TEST(OpenedConnections, TlsMustBeTheSameOnAllRanks) {
  auto all = ranks_of({3, 1});
  for (RankAnnouncement& one : all) one.tls = static_cast<std::uint64_t>(TlsMode::sites);
  EXPECT_TRUE(same_tls(all).ok());
  all[2].tls = static_cast<std::uint64_t>(TlsMode::off);
  const Status different = same_tls(all);
  EXPECT_EQ(different.code(), Code::invalid_usage);
  EXPECT_THAT(std::string(different.text()), HasSubstr("SETO_TLS is 'sites' on rank 0 and 'off' on rank 2"));
  EXPECT_EQ(RankAnnouncement::decoded(all[2].encoded()).value().tls, static_cast<std::uint64_t>(TlsMode::off));
}

TEST(OpenedConnections, AllRanksUseCertificatesOrNone) {
  auto all = ranks_of({3, 1});
  for (RankAnnouncement& one : all) one.tls = static_cast<std::uint64_t>(TlsMode::sites) | kTlsWithCertificates;
  EXPECT_TRUE(same_tls(all).ok());
  all[2].tls = static_cast<std::uint64_t>(TlsMode::sites);
  EXPECT_THAT(std::string(same_tls(all).text()), HasSubstr("SETO_TLS_CERTIFICATE is set on rank 0 and not set on rank 2"));
  all[0].tls = all[1].tls = all[2].tls;
  all[2].tls |= kTlsWithCertificates;
  EXPECT_THAT(std::string(same_tls(all).text()), HasSubstr("SETO_TLS_CERTIFICATE is not set on rank 0 and set on rank 2"));
  all[2].tls = static_cast<std::uint64_t>(TlsMode::off) | kTlsWithCertificates;
  EXPECT_THAT(std::string(same_tls(all).text()), HasSubstr("SETO_TLS is 'sites' on rank 0 and 'off' on rank 2"));
}

TEST(OpenedConnections, OnePairOfEachTwoSitesIsProvedAtBothEnds) {
  const auto all = ranks_of({4, 1, 2});
  const RankSites sites = RankSites::of(all, false).value();
  EXPECT_THAT(proved_by(0, sites), ElementsAre(false, false, true, false));
  EXPECT_THAT(proved_by(1, sites), ElementsAre(false, false, false, false));
  EXPECT_THAT(proved_by(2, sites), ElementsAre(true, false, false, false));
  for (const Shape& shape : {Shape{5, 2, 3}, Shape{7, 1, 7}, Shape{6, 1, 0}}) {
    const auto ranks = ranks_of(shape);
    const RankSites its = RankSites::of(ranks, false).value();
    std::vector<std::vector<bool>> proved;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) proved.push_back(proved_by(rank, its));
    std::size_t count = 0;
    for (std::size_t one = 0; one < ranks.size(); ++one)
      for (std::size_t other = 0; other < ranks.size(); ++other) {
        EXPECT_EQ(proved[one][other], proved[other][one]);
        count += proved[one][other] ? 1 : 0;
      }
    EXPECT_EQ(count, its.count() * (its.count() - 1));
  }
}

}  // namespace
}  // namespace seto
