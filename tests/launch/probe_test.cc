// The parts of seto topo --probe that no link is needed for.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "src/command/probe/probe_steps.h"
#include "src/command/probe/rate_meter.h"

namespace seto::command {
namespace {

TEST(ProbeSteps, EveryLinkOnceAndNoSiteInTwoAtOnce) {
  for (std::size_t sites = 0; sites <= 17; ++sites) {
    std::set<std::pair<std::size_t, std::size_t>> links;
    for (const std::vector<SitePair>& step : probe_steps(sites)) {
      std::set<std::size_t> busy;
      for (const SitePair& link : step) {
        EXPECT_LT(std::max(link.from, link.to), sites);
        EXPECT_TRUE(busy.insert(link.from).second && busy.insert(link.to).second) << sites << " sites: in two probes at once";
        EXPECT_TRUE(links.emplace(link.from, link.to).second) << sites << " sites: probed twice";
      }
    }
    EXPECT_EQ(links.size(), sites < 2 ? 0 : sites * (sites - 1));
  }
}

TEST(ProbeSteps, AreAsFewAsTheyCanBe) {
  EXPECT_EQ(probe_steps(2), (std::vector<std::vector<SitePair>>{{{0, 1}}, {{1, 0}}}));
  for (const std::size_t sites : {4U, 6U, 16U}) EXPECT_EQ(probe_steps(sites).size(), 2 * (sites - 1));
  for (const std::size_t sites : {3U, 5U, 17U}) EXPECT_EQ(probe_steps(sites).size(), 2 * sites);
}

// Pieces of a link whose sockets double what they send once a round trip, from 112 KB up to what the link carries.
struct Played {
  double bytes_per_second = 0;
  double seconds = 0;
  std::uint64_t bytes = 0;
  bool rises = false;
};
Played play(double link, double round_trip_s) {
  RateMeter meter(round_trip_s);
  double at = 0;
  while (!meter.done()) {
    const double opened = 112e3 * std::exp2(std::min(40.0, at / round_trip_s)) / round_trip_s;
    at += static_cast<double>(kProbePiece) / std::min(link, opened);
    meter.add(kProbePiece, at);
  }
  return {meter.bytes_per_second(), at, meter.bytes(), meter.rises()};
}

TEST(RateMeter, WaitsUntilSocketsHaveOpened) {
  for (const double round_trip_s : {1e-4, 0.02, 0.06, 0.1})
    for (const double link : {1e6, 12.5e6, 125e6, 1.25e9}) {
      const Played played = play(link, round_trip_s);
      // A probe of 256 MB ends earlier on a link whose sockets open for longer than that, and says so.
      if (!played.rises) {
        EXPECT_NEAR(played.bytes_per_second, link, 0.05 * link) << round_trip_s;
      }
      EXPECT_EQ(played.rises, link > 1e9 && round_trip_s > 0.01) << link << " " << round_trip_s;
      EXPECT_LT(played.seconds, kMostProbeSeconds + 1 + static_cast<double>(kProbePiece) / link) << link << " " << round_trip_s;
      EXPECT_LE(played.bytes, kMostProbeBytes + kProbePiece);
    }
}

TEST(RateMeter, SaysThatTheRateStillRose) {
  const Played played = play(125e6, 0.2);  // two seconds are ten round trips
  EXPECT_TRUE(played.rises);
  EXPECT_LT(played.bytes_per_second, 125e6);
}

TEST(RateMeter, EndsEarlyWhereTheRateStaysTheSame) {
  EXPECT_LT(play(12.5e6, 0.001).seconds, 1.7);
  EXPECT_LT(play(12.5e6, 0.06).seconds, 1.7);
}

// Eight sockets share the link; one in turn lags for a while, and what the others deliver meanwhile is seen when it has caught
// up.
TEST(RateMeter, PiecesThatAreHeldUpAndComeAtOnceDoNotMatter) {
  constexpr double kLink = 12e6;
  RateMeter meter(0.04);
  double seen = 0;
  for (int piece = 0; !meter.done(); ++piece) {
    const double arrived = piece * static_cast<double>(kProbePiece) / kLink;
    const double in_turn = std::fmod(arrived, 0.25);
    seen = std::max(seen, in_turn < 0.1 ? arrived : arrived - in_turn + 0.25);
    meter.add(kProbePiece, seen);
  }
  EXPECT_NEAR(meter.bytes_per_second(), kLink, 0.03 * kLink);
}

TEST(RateMeter, ASlowLinkHasFewPieces) {
  RateMeter meter(0.01);
  EXPECT_EQ(meter.bytes_per_second(), 0);
  meter.add(kProbePiece, 5);
  EXPECT_EQ(meter.bytes_per_second(), 0) << "one piece has no duration";
  meter.add(kProbePiece, 6);
  EXPECT_FALSE(meter.done()) << "one second";
  meter.add(kProbePiece, 7);
  EXPECT_TRUE(meter.done()) << "two seconds";
  EXPECT_NEAR(meter.bytes_per_second(), kProbePiece, 1);
}

}  // namespace
}  // namespace seto::command
