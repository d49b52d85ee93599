// How many bytes a far link may have on its way, as the rate and the round trip of the link change.

#include "transports/tcp/flow/flight_limit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace seto::tcp {
namespace {

constexpr std::uint32_t kRoundTripUs = 60'000;
constexpr auto kQueuedUs = static_cast<std::uint32_t>(kRoundTripUs * 1.6);
constexpr double kRate = 125e6;
constexpr double kAWay = kRate * kRoundTripUs * 1e-6;  // what the link holds in a round trip

// Looks at a link once a round trip.
struct Looks {
  void look(double rate, std::uint32_t round_trip_us, bool held_back = true) {
    const std::uint64_t passed_ns = std::max<std::uint64_t>(round_trip_us, kRoundTripUs) * 1'000;
    now_ns += passed_ns;
    const auto bytes = static_cast<std::uint64_t>(rate * 1e-9 * static_cast<double>(passed_ns));
    limit.take({bytes, passed_ns, round_trip_us, held_back, in_flight == kAsArrives ? bytes : in_flight, now_ns});
  }
  void looks(int count, double rate, std::uint32_t round_trip_us, bool held_back = true) {
    for (int i = 0; i < count; ++i) look(rate, round_trip_us, held_back);
  }
  void pause(std::uint64_t ns) {
    now_ns += ns;
    limit.take({0, ns, kRoundTripUs, false, 0, now_ns});
  }
  [[nodiscard]] double ways() const { return (static_cast<double>(limit.bytes()) - FlightLimit::kPacedBytes) / kAWay; }

  static constexpr std::uint64_t kAsArrives = ~std::uint64_t{0};
  FlightLimit limit{kRoundTripUs};
  std::uint64_t in_flight = kAsArrives;  // at each look
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
    looks.in_flight = static_cast<std::uint64_t>(in_flight);
    looks.look(measured, static_cast<std::uint32_t>(round_trip * 1e6));
    return round_trip;
  }
};

TEST(FlightLimit, IsUnknownUntilTheLinkIsFull) {
  Looks looks;
  looks.looks(10, kRate, kRoundTripUs, false);
  EXPECT_EQ(looks.limit.bytes(), 0U) << "the sender may have had no more";
  EXPECT_EQ(looks.limit.pace(), 0);
  looks.looks(2, kRate, kQueuedUs, false);
  EXPECT_EQ(looks.limit.bytes(), 0U) << "acknowledgements come in bunches: one sample is not enough";
  looks.look(kRate, kQueuedUs, false);
  EXPECT_NEAR(looks.ways(), FlightLimit::kRoundTrips, 0.01);
  EXPECT_NEAR(looks.limit.pace(), FlightLimit::kPace * kRate, 1e3);
}

// The limit rises to find out whether the link carries more. That is no measurement.
TEST(FlightLimit, TellsWhatItMeasured) {
  Looks looks;
  EXPECT_EQ(looks.limit.measured(), 0);
  looks.looks(20, kRate, kQueuedUs);
  EXPECT_NEAR(looks.limit.measured(), kRate, 0.01 * kRate);
  const std::uint64_t before = looks.limit.measurements();
  EXPECT_GT(before, 3U);
  looks.looks(3, kRate, kRoundTripUs);
  EXPECT_GT(looks.limit.pace(), 1.4 * FlightLimit::kPace * kRate) << "held back without a queue, so it may be too low";
  EXPECT_NEAR(looks.limit.measured(), kRate, 0.01 * kRate);
  EXPECT_LE(looks.limit.measurements(), before + 1) << "the first of these looks still belongs to the queue";
}

TEST(FlightLimit, LeavesEverySocketAFrame) {
  Looks looks;
  looks.looks(6, 1.4e6, kQueuedUs);
  EXPECT_GE(looks.limit.bytes(), FlightLimit::kPacedBytes);
  EXPECT_LT(looks.limit.bytes(), 2 * FlightLimit::kPacedBytes);
}

TEST(FlightLimit, FollowsWhatMostLooksSaw) {
  Looks looks;
  looks.looks(9, kRate, kQueuedUs);
  for (const double rate : {0.0, 2.0, 1.0, 0.0, 0.0, 1.0, 1.0}) looks.look(rate * kRate, kQueuedUs);
  EXPECT_NEAR(looks.ways(), FlightLimit::kRoundTrips, 0.01) << "a pause of the sockets is not a slower link";
  looks.looks(9, 0.4 * kRate, kQueuedUs);
  EXPECT_NEAR(looks.ways(), 0.4 * FlightLimit::kRoundTrips, 0.01);
  looks.looks(9, kRate, kQueuedUs);
  EXPECT_NEAR(looks.ways(), FlightLimit::kRoundTrips, 0.01);
}

TEST(FlightLimit, IsNotLoweredByASenderThatHasLittleToSend) {
  Looks looks;
  looks.looks(6, kRate, kQueuedUs);
  looks.looks(100, 0.01 * kRate, kRoundTripUs, false);
  EXPECT_NEAR(looks.ways(), FlightLimit::kRoundTrips, 0.01);
}

TEST(FlightLimit, IsForgottenWhereTheLinkWasNotFullForLong) {
  Looks looks;
  looks.looks(6, kRate, kQueuedUs);
  looks.pause(FlightLimit::kForgetNs - 1'000'000'000);
  EXPECT_NEAR(looks.ways(), FlightLimit::kRoundTrips, 0.01);
  looks.pause(2'000'000'000);
  EXPECT_EQ(looks.limit.bytes(), 0U);
  looks.looks(6, 2 * kRate, kQueuedUs);
  EXPECT_NEAR(looks.ways(), 2 * FlightLimit::kRoundTrips, 0.01) << "the queue of a new run does not drain it";
}

TEST(FlightLimit, DoesNotCountAPauseAsTimeOfTheLink) {
  Looks looks;
  looks.looks(6, kRate, kQueuedUs);
  for (int i = 0; i < 100; ++i) {
    looks.pause(500'000'000);
    looks.looks(6, kRate, kQueuedUs);
  }
  EXPECT_NEAR(looks.ways(), FlightLimit::kRoundTrips, 0.01);
}

TEST(FlightLimit, TakesAShorterRoundTripAtOnce) {
  Looks looks;
  looks.looks(6, kRate, kQueuedUs);
  looks.look(kRate, kRoundTripUs / 2);
  EXPECT_NEAR(looks.ways(), FlightLimit::kRoundTrips / 2, 0.01);
}

TEST(FlightLimit, DrainsTheQueueWhenNoRoundTripWasShortForLong) {
  Looks looks;
  std::uint32_t drained = 0;
  looks.looks(6, kRate, kQueuedUs);
  while (looks.now_ns < 3 * FlightLimit::kForgetNs) {
    looks.look(kRate, looks.ways() < 1 ? kRoundTripUs : kQueuedUs);
    if (looks.ways() < 1) ++drained;
  }
  EXPECT_EQ(drained, 2U) << "once in ten seconds, and only until a round trip was short";
  EXPECT_EQ(looks.limit.base_us(), kRoundTripUs);
}

TEST(FlightLimit, NeedsNoRoundTrip) {
  Looks looks;
  looks.looks(6, kRate, kQueuedUs);
  looks.looks(20, kRate, 0);
  EXPECT_NEAR(looks.ways(), FlightLimit::kRoundTrips, 0.01) << "a kernel that does not tell it has no long link";
}

// Without the drain, what is acknowledged in a longer round trip looks like a slower link, whose limit is lower again, and so on.
TEST(FlightLimit, FillsALinkWhoseDelayHasDoubled) {
  Looks looks;
  Model model{kRate, kRoundTripUs * 1e-6, kRate};
  looks.looks(6, kRate, kQueuedUs);
  for (int i = 0; i < 50; ++i) model.step(looks);
  EXPECT_NEAR(model.measured, kRate, 0.01 * kRate);
  model.base *= 2.2;
  double seconds = 0;
  double bytes = 0;
  while (seconds < 20) {
    const double passed = model.step(looks);
    seconds += passed;
    bytes += passed * model.measured;
  }
  EXPECT_NEAR(model.measured, kRate, 0.02 * kRate);
  EXPECT_GT(bytes / seconds, 0.85 * kRate) << "what the drain costs";
}

TEST(FlightLimit, FollowsALinkThatBecomesSlowerAndFasterAgain) {
  Looks looks;
  Model model{kRate, kRoundTripUs * 1e-6, kRate};
  looks.looks(6, kRate, kQueuedUs);
  for (const double factor : {0.5, 1.0, 0.25, 2.0}) {
    model.capacity = factor * kRate;
    for (double seconds = 0; seconds < 10;) seconds += model.step(looks);
    EXPECT_NEAR(model.measured, model.capacity, 0.02 * model.capacity) << factor;
    EXPECT_NEAR(looks.ways(), factor * FlightLimit::kRoundTrips, 0.1 * factor) << factor;
  }
}

// A limit that a bad moment has made too low: what arrives then is what it lets through.
TEST(FlightLimit, LeavesALowRateSoon) {
  Looks looks;
  looks.looks(9, 0.02 * kRate, kQueuedUs);
  EXPECT_NEAR(looks.ways(), 0.02 * FlightLimit::kRoundTrips, 0.01);
  int count = 0;
  double measured = 0;
  for (; measured < 0.95 * kRate && count < 100; ++count) {
    // Every socket holds a frame that is paced, all of the time.
    const double on_its_way = (static_cast<double>(looks.limit.bytes()) - FlightLimit::kPacedBytes) / (kRoundTripUs * 1e-6);
    measured = std::min({kRate, looks.limit.pace(), on_its_way});
    looks.look(measured, measured < kRate ? kRoundTripUs : kQueuedUs);
  }
  EXPECT_LT(count, 30);
}

TEST(FlightLimit, IsNotLoweredWhereThereIsNoQueue) {
  Looks looks;
  looks.looks(9, kRate, kQueuedUs);
  looks.looks(40, 0.3 * kRate, kRoundTripUs);
  EXPECT_NEAR(looks.ways(), FlightLimit::kRoundTrips, 0.01) << "the sockets were slow, and not the link";
}

// The kernel smooths the round trip, so it stays long after the last byte, and a call in which this end only receives sends
// little.
TEST(FlightLimit, LearnsNothingWhileLittleIsOnItsWay) {
  Looks looks;
  looks.looks(9, kRate, kQueuedUs);
  looks.in_flight = 0;
  looks.looks(20, 0.001 * kRate, kQueuedUs, false);
  EXPECT_NEAR(looks.ways(), FlightLimit::kRoundTrips, 0.01);
}

TEST(FlightLimit, LearnsNothingFromTheBeginAndTheEndOfACall) {
  Looks looks;
  looks.looks(9, kRate, kQueuedUs);
  for (int call = 0; call < 20; ++call) {
    looks.in_flight = static_cast<std::uint64_t>(kAWay);
    looks.looks(2, 0.001 * kRate, kQueuedUs);  // the first bytes are on their way
    looks.look(0.8 * kRate, kQueuedUs);
    looks.in_flight = static_cast<std::uint64_t>(0.2 * kAWay);
    looks.look(0.6 * kRate, kQueuedUs, false);  // the last ones
  }
  EXPECT_NEAR(looks.ways(), FlightLimit::kRoundTrips, 0.01);
}

}  // namespace
}  // namespace seto::tcp
