// Which of several routes the next frame of a link takes, and how much a route may take.

#include "transports/tcp/flow/route_flow.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>

namespace seto::tcp {
namespace {

constexpr double kFrame = 64 << 10;  // bytes
constexpr double kMB = 1e6;

RouteOffer route(double megabytes_per_s, double round_trip_ms, bool open = true) {
  return {.used = true, .open = open, .rate = megabytes_per_s * kMB, .round_trip_us = round_trip_ms * 1e3};
}

TEST(RouteForNext, TakesTheOneOverWhichTheFrameArrivesFirst) {
  std::array<RouteOffer, 2> offers{route(100, 60), route(25, 90)};
  EXPECT_EQ(route_for_next(offers, kFrame, 100 * kMB), 0U);
  offers[0].busy_s = 0.020;  // arrives after 50 ms, and over the other one after 45
  EXPECT_EQ(route_for_next(offers, kFrame, 100 * kMB), 1U);
}

TEST(RouteForNext, LeavesOutRoutesThatAreNotUsedAndWaitsIfNoneIsOpen) {
  std::array<RouteOffer, 2> offers{route(100, 60), route(25, 30)};
  offers[1].used = false;
  EXPECT_EQ(route_for_next(offers, kFrame, kMB), 0U);
  offers[0].open = false;
  EXPECT_EQ(route_for_next(offers, kFrame, kMB), std::nullopt);
}

// One and a half round trips of it are 135 ms.
TEST(RouteForNext, TriesARouteWhoseRateIsUnknownWhereMuchWaits) {
  std::array<RouteOffer, 2> offers{route(100, 60, false), route(0, 90)};
  EXPECT_EQ(route_for_next(offers, kFrame, 100 * kMB), 1U);
  EXPECT_EQ(route_for_next(offers, kFrame, 10 * kMB), std::nullopt) << "the known one needs 130 ms for all that waits";
  offers[0].open = true;
  EXPECT_EQ(route_for_next(offers, kFrame, 100 * kMB), 0U);
}

// 100 MB/s and 60 ms beside 10 MB/s and 200 ms.
TEST(RouteForNext, DoesNotPreferASlowRouteForItsShortDelay) {
  const std::array<RouteOffer, 2> offers{route(100, 60), route(1.25, 40)};
  EXPECT_EQ(route_for_next(offers, kFrame, kFrame), 0U) << "31 ms against 72 ms";
}

TEST(RouteForNext, LeavesTheLastFramesToTheFastRoute) {
  const std::array<RouteOffer, 2> offers{route(100, 60, false), route(10, 200)};
  EXPECT_EQ(route_for_next(offers, kFrame, 10 * kMB), 1U)
      << "the fast route needs 130 ms for all that waits, the slow one 100 ms for one frame";
  EXPECT_EQ(route_for_next(offers, kFrame, 5 * kMB), std::nullopt) << "80 ms";
}

// Fluid routes that are always asked: together they carry what the sum of them carries, and the end comes about when one route of
// the sum of the rates would end.
TEST(RouteForNext, SharesManyBytesByTheRates) {
  constexpr double kBytes = 100 * kMB;
  constexpr double kLimitS = 1.6;  // round trips at the rate
  constexpr std::array<double, 2> kRate{100 * kMB, 25 * kMB};
  constexpr std::array<double, 2> kDelayS{0.030, 0.045};
  std::array<double, 2> queued{};
  std::array<double, 2> taken{};
  double waiting = kBytes;
  double now = 0;
  constexpr double kStepS = 1e-4;
  for (; waiting > 0; now += kStepS) {
    for (std::size_t i = 0; i < 2; ++i) queued[i] = std::max(0.0, queued[i] - kRate[i] * kStepS);
    for (;;) {
      std::array<RouteOffer, 2> offers{};
      for (std::size_t i = 0; i < 2; ++i)
        offers[i] = {true, queued[i] < kLimitS * 2 * kDelayS[i] * kRate[i], kRate[i], queued[i] / kRate[i], 2e6 * kDelayS[i]};
      const auto next = route_for_next(offers, kFrame, waiting);
      if (!next || waiting <= 0) break;
      queued[*next] += kFrame;
      taken[*next] += kFrame;
      waiting -= kFrame;
    }
  }
  double end = 0;
  for (std::size_t i = 0; i < 2; ++i)
    if (taken[i] > 0) end = std::max(end, now + queued[i] / kRate[i] + kDelayS[i]);
  EXPECT_NEAR(taken[1] / taken[0], 0.25, 0.05);
  EXPECT_LT(end, kBytes / (kRate[0] + kRate[1]) + 0.045 + 0.02);
}

TEST(RouteFlow, OfWhichNothingIsKnownMayHaveALittleOnItsWay) {
  RouteFlow flow;
  flow.used = true;
  flow.begin_flush(1);
  flow.decide_room();
  EXPECT_TRUE(flow.is_open(false, true));
  flow.take(RouteFlow::kTrialBytes);
  EXPECT_EQ(flow.trial(), RouteFlow::kTrialBytes);
  EXPECT_FALSE(flow.is_open(false, true));
  EXPECT_TRUE(flow.is_open(false, false)) << "nothing is known of the others either";
  EXPECT_TRUE(flow.is_open(true, true)) << "frames that press";
}

TEST(RouteFlow, HasRoomUpToItsLimitAndNoneWhileItIsNotUsed) {
  RouteFlow flow;
  flow.begin_flush(1);
  flow.decide_room();
  EXPECT_EQ(flow.room, 0U) << "not used";
  flow.used = true;
  flow.decide_room();
  EXPECT_EQ(flow.room, RouteFlow::kUnlimited);
  flow.end_flush(true);
  EXPECT_FALSE(flow.held_back);
  flow.room = 0;
  flow.end_flush(false);
  EXPECT_FALSE(flow.held_back) << "no frame waits";
  flow.end_flush(true);
  EXPECT_TRUE(flow.held_back);
  flow.end_flush(false);
  EXPECT_FALSE(flow.held_back);
  EXPECT_TRUE(flow.was_held_back);
}

TEST(RouteFlow, IsBusyForAsLongAsItsRateNeedsForWhatItTook) {
  constexpr std::uint64_t kMs = 1'000'000;
  RouteFlow flow;
  flow.used = true;
  flow.sockets = 1;
  flow.sampler = std::make_unique<RateSampler>(1, 10'000);
  flow.begin_flush(kMs);
  flow.take(1'000'000);
  EXPECT_EQ(flow.busy_s(), 0) << "its rate is unknown";
  TcpDelivery delivery{};
  delivery.segment_bytes = 1'000;
  for (std::uint64_t look = 1; flow.rate() == 0 && look < 50; ++look) {
    delivery.segments = static_cast<std::uint32_t>(look * 1'000);
    const std::optional<TcpDelivery> seen = delivery;
    (void)flow.sampler->take({{&seen, 1}, false, look * 10 * kMs, true});
  }
  ASSERT_NEAR(flow.rate(), 100e6, 1e6) << "bytes per second";
  flow.take(1'000'000);
  flow.take(1'000'000);
  EXPECT_NEAR(flow.busy_s(), 0.020, 0.001);
  flow.begin_flush(16 * kMs);
  EXPECT_NEAR(flow.busy_s(), 0.005, 0.001);
  flow.begin_flush(100 * kMs);
  EXPECT_EQ(flow.busy_s(), 0);
}

TEST(RouteFlow, IsMeasuredAnewWhenItBegins) {
  RouteFlow flow;
  flow.sockets = 2;
  flow.sampler = std::make_unique<RateSampler>(2, 30'000);
  flow.flight = std::make_unique<FlightLimit>(30'000);
  flow.beyond_loss = 5;
  flow.was_held_back = true;
  flow.begin(60'000);
  EXPECT_EQ(flow.round_trip_us, 60'000U);
  EXPECT_EQ(flow.flight->base_us(), 60'000U);
  EXPECT_EQ(flow.beyond_loss, 0U);
  EXPECT_FALSE(flow.was_held_back);
  EXPECT_EQ(flow.rate(), 0);
  EXPECT_EQ(flow.measurements(), 0U);
}

}  // namespace
}  // namespace seto::tcp
