// How many bytes a far link may have on its way, as the rate and the round trip of the link change.

#include "transports/tcp/link/flight_limit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace seto::tcp {
namespace {

constexpr std::uint32_t kRoundTripUs = 60'000;
constexpr double kRate = 125e6;
constexpr double kAWay = kRate * kRoundTripUs * 1e-6;  // what the link holds in a round trip

// Looks at a link once a round trip, with a sender that always has more to send.
struct Looks {
  void look(double rate, std::uint32_t round_trip_us, bool measured = true) {
    now_ns += std::max<std::uint64_t>(round_trip_us, 1'000) * 1'000;
    limit.take({rate, measured, round_trip_us, now_ns});
  }
  [[nodiscard]] double ways() const { return static_cast<double>(limit.bytes()) / kAWay; }

  FlightLimit limit{kRoundTripUs};
  std::uint64_t now_ns = 1'000'000'000;
};

// A link whose queue takes everything, and a sender that obeys the limit and the pace: what its kernel would measure.
struct Model {
  double capacity;  // bytes per second
  double base;      // seconds
  double measured;  // bytes per second
  double in_flight = 0;

  // The seconds of a round trip while the limit is used up.
  double step(Looks& looks) {
    const double limit = static_cast<double>(looks.limit.bytes());
    const bool fills = std::min(looks.limit.pace(), limit / base) >= capacity;
    const double least = fills ? limit : std::min(limit, looks.limit.pace() * base);
    in_flight = std::max(least, in_flight - capacity * std::max(base, in_flight / capacity) / 2);
    const double round_trip = std::max(base, in_flight / capacity);
    measured = std::min(capacity, in_flight / round_trip);
    looks.look(measured, static_cast<std::uint32_t>(round_trip * 1e6));
    return round_trip;
  }
};

TEST(FlightLimit, IsUnknownWithoutARate) {
  Looks looks;
  looks.look(0, kRoundTripUs, false);
  EXPECT_EQ(looks.limit.bytes(), 0U);
  EXPECT_EQ(looks.limit.pace(), 0);
}

TEST(FlightLimit, IsAPartMoreThanTheLinkHolds) {
  Looks looks;
  looks.look(kRate, kRoundTripUs);
  EXPECT_NEAR(looks.ways(), FlightLimit::kRoundTrips, 0.01);
  EXPECT_NEAR(looks.limit.pace(), FlightLimit::kPace * kRate, 1);
}

TEST(FlightLimit, LeavesEverySocketAFrame) {
  Looks looks;
  looks.look(1e5, kRoundTripUs);
  EXPECT_EQ(looks.limit.bytes(), FlightLimit::kLeastBytes);
}

TEST(FlightLimit, FollowsAHigherRateAtOnceAndALowerOneLater) {
  Looks looks;
  looks.look(kRate, kRoundTripUs);
  looks.look(1.2 * kRate, kRoundTripUs);
  EXPECT_NEAR(looks.ways(), 1.2 * FlightLimit::kRoundTrips, 0.01);
  for (std::uint32_t i = 1; i < FlightLimit::kLooksOfARate; ++i) looks.look(0.5 * kRate, kRoundTripUs);
  EXPECT_NEAR(looks.ways(), 1.2 * FlightLimit::kRoundTrips, 0.01) << "a pause of the sockets is not a slower link";
  looks.look(0.4 * kRate, kRoundTripUs);
  EXPECT_NEAR(looks.ways(), 0.5 * FlightLimit::kRoundTrips, 0.01) << "the largest since then";
}

TEST(FlightLimit, IsForgottenAfterAPause) {
  Looks looks;
  looks.look(kRate, kRoundTripUs);
  looks.now_ns += FlightLimit::kForgetNs;
  looks.look(kRate, kRoundTripUs, false);
  EXPECT_EQ(looks.limit.bytes(), 0U);
  looks.look(kRate, kRoundTripUs);
  EXPECT_NEAR(looks.ways(), FlightLimit::kRoundTrips, 0.01);
}

TEST(FlightLimit, TakesAShorterRoundTripAtOnce) {
  Looks looks;
  looks.look(kRate, kRoundTripUs);
  looks.look(kRate, kRoundTripUs / 2);
  EXPECT_NEAR(looks.ways(), FlightLimit::kRoundTrips / 2, 0.01);
}

TEST(FlightLimit, DrainsTheQueueWhenNoRoundTripWasShortForLong) {
  Looks looks;
  const auto queued_us = static_cast<std::uint32_t>(kRoundTripUs * 1.6);
  std::uint32_t drained = 0;
  while (looks.now_ns < 3 * FlightLimit::kForgetNs) {
    looks.look(kRate, looks.ways() < 1 ? kRoundTripUs : queued_us);
    if (looks.ways() < 1) ++drained;
  }
  EXPECT_EQ(drained, 2U) << "once in ten seconds, and only until a round trip was short";
  EXPECT_EQ(looks.limit.base_us(), kRoundTripUs);
}

TEST(FlightLimit, NeedsNoRoundTrip) {
  Looks looks;
  looks.look(kRate, kRoundTripUs);
  for (std::uint32_t i = 0; i < 2 * FlightLimit::kLongLooks; ++i) looks.look(kRate, 0);
  EXPECT_NEAR(looks.ways(), FlightLimit::kRoundTrips, 0.01) << "a kernel that does not tell it has no long link";
}

// Without the drain, what is acknowledged in a longer round trip looks like a slower link, whose limit is lower again, and so on.
TEST(FlightLimit, FillsALinkWhoseDelayHasDoubled) {
  Looks looks;
  Model model{kRate, kRoundTripUs * 1e-6, kRate};
  looks.look(kRate, kRoundTripUs);
  for (int i = 0; i < 50; ++i) model.step(looks);
  EXPECT_NEAR(model.measured, kRate, 0.01 * kRate);
  model.base *= 2.2;
  double seconds = 0;
  double lowest = kRate;
  while (seconds < 20) {
    seconds += model.step(looks);
    lowest = std::min(lowest, model.measured);
  }
  EXPECT_NEAR(model.measured, kRate, 0.02 * kRate);
  EXPECT_GT(lowest, 0.2 * kRate) << "while the queue is drained";
}

TEST(FlightLimit, FollowsALinkThatBecomesSlowerAndFasterAgain) {
  Looks looks;
  Model model{kRate, kRoundTripUs * 1e-6, kRate};
  looks.look(kRate, kRoundTripUs);
  for (const double factor : {0.5, 1.0, 0.25, 2.0}) {
    model.capacity = factor * kRate;
    for (double seconds = 0; seconds < 10;) seconds += model.step(looks);
    EXPECT_NEAR(model.measured, model.capacity, 0.02 * model.capacity) << factor;
    EXPECT_NEAR(looks.ways(), factor * FlightLimit::kRoundTrips, 0.1 * factor) << factor;
  }
}

}  // namespace
}  // namespace seto::tcp
