#include "src/core/connect/rank_sites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "src/base/config.h"

namespace seto {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint32_t kLimitUs = 1'000;

RankAnnouncement rank_on(const char* host, ContextId context, const char* site = "") {
  RankAnnouncement one;
  one.place = {host, "process", context};
  one.site = site;
  return one;
}

// Two ranks on host a, one on b, one on c.
std::vector<RankAnnouncement> four_ranks() { return {rank_on("a", 1), rank_on("a", 2), rank_on("b", 3), rank_on("c", 4)}; }

using RoundTrips = std::vector<std::vector<std::uint32_t>>;

// c is far from a and b.
RoundTrips c_is_far() { return {{0, 200, 60'000}, {0, 150, 61'000}, {200, 0, 59'000}, {60'000, 59'000, 0}}; }

RankSites settled(std::vector<RankAnnouncement> all, const RoundTrips& round_trips, std::uint32_t limit_us = kLimitUs) {
  RankSites sites = RankSites::of(all, false).value();
  EXPECT_THAT(sites.settle(round_trips, limit_us).value(), IsEmpty());
  return sites;
}

TEST(RankSites, AreFoundByRoundTrips) {
  const RankSites sites = settled(four_ranks(), c_is_far());
  EXPECT_EQ(sites.hosts(), 3U);
  EXPECT_THAT(sites.sites().of_rank, ElementsAre(0, 0, 0, 1));
  EXPECT_FALSE(sites.sites().stated);
  EXPECT_EQ(sites.sites().links.between(0, 1).round_trip_s, 59e-3) << "the shortest of all pairs of hosts";
  EXPECT_EQ(sites.sites().links.between(1, 0).round_trip_s, 59e-3);
  EXPECT_DOUBLE_EQ(sites.sites().longest_within_s.value_or(0), 150e-6) << "the shortest of all statements";
  EXPECT_EQ(sites.tiers().widest(), TierKind::world);
  EXPECT_EQ(sites.stated_tiers().widest(), TierKind::site) << "a deterministic call does not depend on round trips";
  EXPECT_THAT(text_of(sites.sites()), HasSubstr("2 sites found by round trips: 0>1 round trip 59 ms (measured), rate unknown"));
}

TEST(RankSites, AreOneWhereNothingIsFarOrNothingIsAsked) {
  EXPECT_EQ(settled(four_ranks(), {{0, 200, 300}, {}, {200, 0, 300}, {}}).count(), 1U);
  EXPECT_EQ(settled(four_ranks(), c_is_far(), 0).count(), 1U);
  EXPECT_EQ(settled(four_ranks(), {{}, {}, {}, {}}).count(), 1U);
  RankSites deterministic = RankSites::of(four_ranks(), true).value();
  EXPECT_TRUE(deterministic.settle(c_is_far(), kLimitUs).ok());
  EXPECT_EQ(deterministic.count(), 1U);
}

TEST(RankSites, TellWhoSharesALinkAndItsRate) {
  std::vector<RankAnnouncement> all = {rank_on("a", 1, "tokyo"), rank_on("a", 2, "tokyo"), rank_on("b", 3, "tokyo"),
                                       rank_on("c", 4, "kyoto"), rank_on("c", 5, "kyoto")};
  const auto needs = [&](std::size_t rank) { return RankSites::of(all, false).value().needs_of(rank); };
  EXPECT_EQ(needs(0)[3].sharers, 3U) << "the ranks of the larger site";
  EXPECT_EQ(needs(3)[0].sharers, 3U) << "the same at both ends";
  EXPECT_EQ(needs(0)[2].sharers, 2U) << "within a site those of the larger host";
  EXPECT_EQ(needs(0)[3].bytes_per_second, 0);
  for (RankAnnouncement& one : all) one.uplink_mbit = one.site == "tokyo" ? 1'000 : 400;
  EXPECT_EQ(needs(0)[3].bytes_per_second, 50e6);
  EXPECT_EQ(needs(3)[0].bytes_per_second, 50e6);
  EXPECT_EQ(needs(0)[2].bytes_per_second, 0) << "not of the link between sites";
  all[4].uplink_mbit = 0;
  EXPECT_EQ(needs(0)[3].bytes_per_second, 0) << "not known of every site";
  for (RankAnnouncement& one : all) one.site = {};
  EXPECT_EQ(needs(0)[4].sharers, 2U);
  EXPECT_EQ(needs(2)[4].sharers, 2U) << "of the hosts, where sites are not stated";
}

TEST(RankSites, ThatAreStatedHoldWhateverTheRoundTrips) {
  const std::vector<RankAnnouncement> all = {rank_on("a", 1, "tokyo"), rank_on("a", 2, "tokyo"), rank_on("b", 3, "kyoto"),
                                             rank_on("c", 4, "kyoto")};
  const RankSites sites = settled(all, c_is_far());
  EXPECT_TRUE(sites.sites().stated);
  EXPECT_THAT(sites.sites().of_rank, ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(sites.sites().links.between(0, 1).round_trip_s, 150e-6);
  EXPECT_EQ(sites.stated_tiers().widest(), TierKind::world);
}

TEST(RankSites, HostsOfOneStatedSiteThatAreFarFromEachOtherAreTold) {
  std::vector<RankAnnouncement> all = {rank_on("a", 1, "north"), rank_on("a", 2, "north"), rank_on("b", 3, "north"),
                                       rank_on("c", 4, "north")};
  for (RankAnnouncement& one : all) one.tls = static_cast<std::uint64_t>(TlsMode::sites);
  const RankSites sites = settled(all, c_is_far());
  EXPECT_THAT(sites.far_within_sites(all),
              ElementsAre("ranks 0 and 3 state one site, 'north', but their round trip is 60.0 ms: data between them is not "
                          "encrypted; give the sites different SETO_SITE_IDs, or set SETO_TLS=always"));
  for (RankAnnouncement& one : all) one.tls = static_cast<std::uint64_t>(TlsMode::always) | kTlsWithCertificates;
  EXPECT_THAT(sites.far_within_sites(all), ElementsAre(HasSubstr("60.0 ms: plans take them for near; give the sites different")))
      << "encrypted";
  all[3].site = "south";
  EXPECT_THAT(settled(all, c_is_far()).far_within_sites(all), IsEmpty()) << "they state two sites";
  all[3].site = "north";
  EXPECT_THAT(settled(all, {{0, 200, 4'000}, {}, {200, 0, 4'999}, {}}).far_within_sites(all), IsEmpty()) << "a busy machine";
  EXPECT_THAT(settled(four_ranks(), c_is_far()).far_within_sites(four_ranks()), IsEmpty()) << "sites were found";
}

TEST(RankSites, ThatWereFoundStay) {
  std::vector<RankAnnouncement> all = four_ranks();
  const RankSites first = settled(all, c_is_far());
  for (std::size_t rank = 0; rank < all.size(); ++rank) all[rank].found_site = first.label_of(rank, 77);
  const RankSites again = settled({all[3], all[0], all[2]}, {{}, {}, {}});  // a split in another order, without round trips
  EXPECT_THAT(again.sites().of_rank, ElementsAre(0, 1, 1));
  EXPECT_THAT(again.label_of(0, 78), IsEmpty()) << "it found nothing";
  all[2].found_site = "another 0";
  const RankSites anew = settled(all, c_is_far());
  EXPECT_THAT(anew.sites().of_rank, ElementsAre(0, 0, 0, 1)) << "two attempts found sites, so their numbers say nothing";
  EXPECT_EQ(RankSites::of({all[0], all[1]}, true).value().tiers().widest(), TierKind::node);
}

TEST(RankSites, NonsenseIsBoundedAndTheRankThatStatedItIsNamed) {
  RankSites sites = RankSites::of(four_ranks(), false).value();
  RoundTrips round_trips = c_is_far();
  round_trips[3] = {4'000'000'000, 59'000, 0};
  EXPECT_THAT(sites.settle(round_trips, kLimitUs).value(),
              HasSubstr("rank 3 (link from site 1 to site 0) states round trip in seconds = 4e+03"));
  EXPECT_EQ(sites.sites().links.between(1, 0).round_trip_s, 59e-3);
  round_trips[1] = {0, 1};
  EXPECT_THAT(std::string(sites.settle(round_trips, kLimitUs).status().text()),
              HasSubstr("rank 1: it states round trips to 2 hosts"));
}

// ---- stated rates ----

std::vector<RankAnnouncement> with_rates(const std::vector<std::uint64_t>& uplinks_mbit) {
  std::vector<RankAnnouncement> all = {rank_on("a", 1, "tokyo"), rank_on("a", 2, "tokyo"), rank_on("b", 3, "kyoto")};
  for (std::size_t rank = 0; rank < all.size(); ++rank) all[rank].uplink_mbit = uplinks_mbit[rank];
  return all;
}

TEST(RankSites, RatesAreThoseThatAllSitesState) {
  std::vector<RankAnnouncement> all = with_rates({250, 250, 1000});
  all[2].downlink_mbit = 500;
  const RankSites sites = settled(all, {{}, {}, {}});
  const std::vector<PortRates> rates = {{31.25e6, 31.25e6}, {125e6, 62.5e6}};
  EXPECT_EQ(sites.sites().rates, rates) << "a downlink that is not stated is like the uplink";
  const Tiers tiers = sites.tiers();
  EXPECT_TRUE(std::equal(rates.begin(), rates.end(), tiers.rates().begin(), tiers.rates().end()));
  EXPECT_EQ(sites.stated_tiers().rates().size(), 2U);
  EXPECT_THAT(text_of(sites.sites()), HasSubstr("; site 1 sends 1000 Mbit/s and receives 500 Mbit/s (stated)"));
}

TEST(RankSites, RatesOfOneSiteMustBeEqual) {
  RankSites sites = RankSites::of(with_rates({250, 500, 1000}), false).value();
  EXPECT_THAT(std::string(sites.settle({{}, {}, {}}, kLimitUs).status().text()),
              HasSubstr("are 250 and 250 on rank 0 and 500 and 500 on rank 1 of the same site: state the same"));
}

TEST(RankSites, RatesOfSomeSitesAloneAreNotUsed) {
  RankSites sites = RankSites::of(with_rates({250, 250, 0}), false).value();
  EXPECT_THAT(sites.settle({{}, {}, {}}, kLimitUs).value(), HasSubstr("SETO_SITE_UPLINK_MBIT is not set on rank 2"));
  EXPECT_THAT(sites.sites().rates, IsEmpty());
  EXPECT_TRUE(sites.tiers().rates().empty());
}

TEST(RankSites, RatesOfSitesThatWereFoundCountForCallsThatMayUseThem) {
  std::vector<RankAnnouncement> all = four_ranks();
  for (RankAnnouncement& one : all) one.uplink_mbit = one.place.host == "c" ? 100 : 1000;
  const RankSites sites = settled(all, c_is_far());
  EXPECT_EQ(sites.tiers().rates().size(), 2U);
  EXPECT_TRUE(sites.stated_tiers().rates().empty()) << "a deterministic call knows one site";
}

// ---- the limit of what a site sends ----

std::vector<RankAnnouncement> with_pacing(const std::vector<std::uint64_t>& limits_mbit) {
  std::vector<RankAnnouncement> all = with_rates({250, 250, 1000});
  for (std::size_t rank = 0; rank < all.size(); ++rank) all[rank].pacing_mbit = limits_mbit[rank];
  return all;
}

TEST(RankSites, TheRanksOfASiteShareItsLimitEqually) {
  const RankSites sites = settled(with_pacing({100, 100, 0}), {{}, {}, {}});
  EXPECT_EQ(sites.pace_of(0), 6'250'000U);
  EXPECT_EQ(sites.pace_of(1), 6'250'000U);
  EXPECT_EQ(sites.pace_of(2), 0U) << "its site has none";
  EXPECT_EQ(sites.sites().rates[0].up, 12.5e6) << "choice knows that the site sends no faster";
  EXPECT_EQ(sites.sites().rates[0].down, 31.25e6);
  EXPECT_EQ(sites.sites().rates[1].up, 125e6);
}

TEST(RankSites, ALimitHoldsBetweenSitesThatWereFoundAndNotWithinOne) {
  std::vector<RankAnnouncement> all = four_ranks();
  for (RankAnnouncement& one : all) one.pacing_mbit = 30;
  EXPECT_EQ(settled(all, c_is_far()).pace_of(0), 1'250'000U);
  EXPECT_EQ(settled(all, c_is_far()).pace_of(3), 3'750'000U);
  EXPECT_EQ(settled(all, c_is_far(), 0).pace_of(0), 0U);
}

TEST(RankSites, LimitsOfOneSiteMustBeEqual) {
  RankSites sites = RankSites::of(with_pacing({100, 90, 50}), false).value();
  EXPECT_THAT(std::string(sites.settle({{}, {}, {}}, kLimitUs).status().text()),
              HasSubstr("SETO_SITE_PACING_MBIT is 100 on rank 0 and 90 on rank 1 of the same site: state the same"));
}

TEST(RankSites, AnAbsurdRateIsBounded) {
  const RankSites sites = settled(with_rates({~std::uint64_t{0}, ~std::uint64_t{0}, 1}), {{}, {}, {}});
  EXPECT_EQ(sites.tiers().rates()[0].up, 12.5e12);
}

// ---- a topology file ----

// Hosts a and c in different sites; b is not in it.
TopologyGraph graph_of_a_and_c() {
  TopologyGraph graph;
  graph.sites.resize(2);
  graph.sites[0].name = "tokyo";
  graph.sites[1].name = "osaka";
  graph.hosts.resize(3);
  graph.hosts[0].name = "a";
  graph.hosts[1].name = "c";
  graph.hosts[1].site = 1;
  graph.hosts[2].name = "spare";
  graph.sites[0].uplink.bytes_per_second = graph.sites[1].downlink.bytes_per_second = 25e6;
  graph.sites[0].downlink.bytes_per_second = graph.sites[1].uplink.bytes_per_second = 12.5e6;
  graph.between(0, 1) = {
      .medium = LinkMedium::wide_area, .bytes_per_second = 20e6, .round_trip_s = 0.01, .source = FactSource::file};
  graph.between(1, 0) = {.medium = LinkMedium::wide_area, .bytes_per_second = 12.5e6, .source = FactSource::file};
  return graph;
}
StatedSites file_of_a_and_c() { return {graph_of_a_and_c(), 1}; }

std::vector<RankAnnouncement> with_file(std::vector<RankAnnouncement> all) {
  for (RankAnnouncement& one : all) {
    one.topology = 1;
    one.words = one.place.host;
    one.words += ":4711";
    one.file_host = file_of_a_and_c().host_of("", one.place.host);
  }
  return all;
}

std::vector<RankAnnouncement> without_b() { return {rank_on("a", 1), rank_on("a", 2), rank_on("c", 3)}; }

TEST(RankSites, AreStatedByAFileWithTheirRates) {
  const std::vector<RankAnnouncement> all = with_file(without_b());
  RankSites sites = RankSites::of(all, false, file_of_a_and_c()).value();
  EXPECT_TRUE(sites.known());
  EXPECT_EQ(sites.stated_site(2), "osaka");
  EXPECT_EQ(sites.needs_of(0)[2].bytes_per_second, 25e6) << "the number of sockets follows from the file";
  EXPECT_THAT(sites.settle({{0, 2'000}, {}, {2'000, 0}}, kLimitUs).value(), IsEmpty());
  EXPECT_TRUE(sites.sites().stated);
  EXPECT_TRUE(sites.sites().by_file);
  EXPECT_THAT(sites.sites().of_rank, ElementsAre(0, 0, 1));
  EXPECT_THAT(sites.sites().names, ElementsAre("tokyo", "osaka"));
  EXPECT_THAT(sites.sites().rates, ElementsAre(PortRates{25e6, 12.5e6}, PortRates{12.5e6, 25e6}));
  EXPECT_EQ(sites.sites().links.between(0, 1).round_trip_s, 2e-3) << "a round trip that was measured holds";
  EXPECT_EQ(sites.sites().links.between(0, 1).bytes_per_second, 20e6);
  EXPECT_THAT(text_of(sites.sites()), HasSubstr("2 sites stated by SETO_TOPOLOGY_FILE"));
  EXPECT_THAT(text_of(sites.sites()), HasSubstr("site 1 sends 100 Mbit/s and receives 200 Mbit/s (file)"));
  EXPECT_THAT(sites.why_no_file(all), IsEmpty());
  EXPECT_EQ(sites.hosts_not_in_job(all), "hosts of SETO_TOPOLOGY_FILE without ranks of this job: spare");
  EXPECT_EQ(sites.stated_tiers().widest(), TierKind::world) << "a deterministic call counts on the file";
}

TEST(RankSites, SocketsFollowFromTheLinksOfAFileWhereItStatesNoRatesOfSites) {
  TopologyGraph graph = graph_of_a_and_c();
  for (TopologySite& site : graph.sites) site.uplink = site.downlink = {};
  graph.between(1, 0).socket_bytes_per_second = 5e6;
  const std::vector<RankAnnouncement> all = with_file(without_b());
  const RankSites sites = RankSites::of(all, false, {std::move(graph), 1}).value();
  for (const auto& [rank, peer] : {std::pair<std::size_t, std::size_t>{0, 2}, {2, 0}}) {
    EXPECT_EQ(sites.needs_of(rank)[peer].bytes_per_second, 20e6) << "the faster direction, at both ends";
    EXPECT_EQ(sites.needs_of(rank)[peer].socket_bytes_per_second, 5e6);
  }
  EXPECT_EQ(sites.needs_of(0)[1].bytes_per_second, 0) << "within a site";
}

TEST(RankSites, AnIdAndRatesThatRanksStateHoldInPlaceOfTheFile) {
  std::vector<RankAnnouncement> all = with_file(without_b());
  all[2].site = "tokyo";
  EXPECT_EQ(RankSites::of(all, false, file_of_a_and_c()).value().count(), 1U);
  all[2].site = "";
  all[2].uplink_mbit = 1000;
  RankSites sites = RankSites::of(all, false, file_of_a_and_c()).value();
  EXPECT_TRUE(sites.settle({{}, {}, {}}, kLimitUs).ok());
  EXPECT_EQ(sites.sites().rates[1].up, 125e6);
  EXPECT_EQ(sites.sites().rates[0].up, 25e6);
  EXPECT_THAT(text_of(sites.sites()),
              HasSubstr("site 0 sends 200 Mbit/s and receives 100 Mbit/s (file); site 1 sends 1000 Mbit/s"));
  EXPECT_THAT(text_of(sites.sites()), ::testing::EndsWith("(stated)"));
  EXPECT_EQ(sites.sites().links.between(0, 1).round_trip_s, 0.01) << "none was measured";
}

TEST(RankSites, AFileThatLacksAHostIsNotUsed) {
  const std::vector<RankAnnouncement> all = with_file(four_ranks());
  RankSites sites = RankSites::of(all, false, file_of_a_and_c()).value();
  EXPECT_EQ(sites.stated_site(0), "") << "nothing that two ends may count on when they connect";
  EXPECT_EQ(sites.needs_of(0)[3].bytes_per_second, 0);
  EXPECT_THAT(sites.settle(c_is_far(), kLimitUs).value(), IsEmpty());
  EXPECT_THAT(sites.sites().of_rank, ElementsAre(0, 0, 0, 1)) << "found";
  EXPECT_FALSE(sites.sites().stated);
  EXPECT_FALSE(sites.sites().by_file);
  EXPECT_THAT(sites.sites().names, IsEmpty());
  EXPECT_THAT(sites.sites().rates, IsEmpty());
  EXPECT_EQ(sites.why_no_file(all),
            "SETO_TOPOLOGY_FILE is not used: it states no named site for b; add these hosts by name or SETO_HOST_ID, or set "
            "SETO_SITE_ID "
            "there");
  EXPECT_EQ(RankSites::of(all, true, file_of_a_and_c()).value().count(), 1U) << "a deterministic call finds no sites";
}

TEST(RankSites, AHostThatTheFileLacksIsNamedByItsId) {
  std::vector<RankAnnouncement> all = with_file(four_ranks());
  all[2].place.host = "id=gamma rank 2";  // as with SETO_TRANSPORT=tcp
  EXPECT_THAT(RankSites::of(all, false, file_of_a_and_c()).value().why_no_file(all),
              HasSubstr("no named site for b (SETO_HOST_ID=gamma); add"));
  all[2].place.host = "id=gamma";
  EXPECT_THAT(RankSites::of(all, false, file_of_a_and_c()).value().why_no_file(all),
              HasSubstr("no named site for b (SETO_HOST_ID=gamma); add"));
}

TEST(RankSites, AnIdStatesTheSiteOfAHostThatTheFileLacks) {
  std::vector<RankAnnouncement> all = with_file(four_ranks());
  all[2].site = "tokyo";
  RankSites sites = RankSites::of(all, false, file_of_a_and_c()).value();
  EXPECT_TRUE(sites.known());
  EXPECT_THAT(sites.sites().of_rank, ElementsAre(0, 0, 0, 1));
  EXPECT_TRUE(sites.settle(c_is_far(), kLimitUs).ok());
  EXPECT_THAT(sites.sites().rates, ElementsAre(PortRates{25e6, 12.5e6}, PortRates{12.5e6, 25e6}));
}

TEST(RankSites, MachinesThatAreOneHostOfTheFileAreRefused) {
  std::vector<RankAnnouncement> all = with_file(without_b());
  all[0].machine = 1;
  all[1].machine = 2;
  const std::string text(RankSites::of(all, false, file_of_a_and_c()).status().text());
  EXPECT_THAT(text, HasSubstr("ranks 0 (a:4711) and 1 (a:4711) run on two machines that are one host of SETO_TOPOLOGY_FILE"));
  EXPECT_THAT(text, HasSubstr("SETO_HOST_ID"));
  all[1].machine = 0;
  EXPECT_TRUE(RankSites::of(all, false, file_of_a_and_c()).ok()) << "unknown machines may be one";
}

TEST(RankSites, TheFileOfAnotherJobIsSaidAndLeavesSitesToRoundTrips) {
  std::vector<RankAnnouncement> all = with_file(four_ranks());
  for (RankAnnouncement& one : all) one.file_host = 0;
  RankSites sites = RankSites::of(all, false, file_of_a_and_c()).value();
  EXPECT_TRUE(sites.settle(c_is_far(), kLimitUs).ok());
  EXPECT_THAT(sites.sites().of_rank, ElementsAre(0, 0, 0, 1));
  EXPECT_FALSE(sites.sites().stated);
  EXPECT_THAT(sites.why_no_file(all),
              HasSubstr("SETO_TOPOLOGY_FILE is not used: it states no named site for any host of this job"));
}

TEST(RankSites, TheOwnRoundTripToAHostIsTheShortestToItsRanks) {
  const RankSites sites = RankSites::of(four_ranks(), false).value();
  EXPECT_THAT(sites.round_trips_of({900, 300, 0, 50}), ElementsAre(300, 0, 50));
  EXPECT_THAT(sites.round_trips_of({0, 0, 0, 0}), IsEmpty());
}

TEST(RankSites, ASharedContextIsNamed) {
  EXPECT_THAT(std::string(RankSites::of({rank_on("a", 1), rank_on("b", 2), rank_on("a", 1)}, false).status().text()),
              HasSubstr("ranks 0 and 2 use the same context"));
}

}  // namespace
}  // namespace seto
