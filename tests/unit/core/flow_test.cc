#include "src/core/choice/flow.h"

#include <gtest/gtest.h>

namespace seto {
namespace {

// The bytes that the send buffer of a socket lets it carry in a round trip.
constexpr double kSocketBytes = 3.1e6;

LinkFacts link_of(double bytes_per_second, double round_trip_s, double socket_bytes) {
  LinkFacts link{.round_trip_s = round_trip_s};
  if (bytes_per_second > 0) link.bytes_per_second = bytes_per_second;
  if (socket_bytes > 0) link.socket_bytes_per_second = socket_bytes / round_trip_s;
  return link;
}

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kLimit = 256 * kMiB;

TEST(Flow, AGigabitLinkOf60MsKeepsTwoRoundTripsUnderWay) {
  const Flow flow = flow_of(link_of(125e6, 60e-3, kSocketBytes), kLimit);
  EXPECT_EQ(flow.window_bytes, 15'000'000U);
  EXPECT_EQ(flow.sockets, 3U) << "7.5 MB a round trip, 3.1 MB a socket";
  EXPECT_EQ(flow.slice_bytes, 468'750U);
  EXPECT_EQ(flow.order, StepOrder::readiness);
}

TEST(Flow, ANearLinkHasTheSmallestWindowOneSocketAndTheSkewedOrder) {
  const Flow flow = flow_of(link_of(3e9, 16e-6, kSocketBytes), kLimit);
  EXPECT_EQ(flow.window_bytes, 4 * kMiB);
  EXPECT_EQ(flow.sockets, 1U);
  EXPECT_EQ(flow.slice_bytes, 256U << 10);
  EXPECT_EQ(flow.order, StepOrder::skewed);
}

TEST(Flow, AHundredGigabitOf100MsMeetsEveryBound) {
  const Flow flow = flow_of(link_of(12.5e9, 0.1, kSocketBytes), kLimit);
  EXPECT_EQ(flow.window_bytes, kLimit);
  EXPECT_EQ(flow.sockets, 16U);
  EXPECT_EQ(flow.slice_bytes, 4 * kMiB);
}

TEST(Flow, AnUnknownRateTakesAnEighthOfTheMemoryAndEightSocketsIfLong) {
  const Flow far = flow_of(link_of(0, 60e-3, kSocketBytes), kLimit);
  EXPECT_EQ(far.window_bytes, kLimit / 8);
  EXPECT_EQ(far.sockets, 8U);
  EXPECT_EQ(far.slice_bytes, 512U << 10);
  EXPECT_EQ(far.order, StepOrder::readiness);
  EXPECT_EQ(flow_of(link_of(0, 16e-6, kSocketBytes), kLimit).sockets, 1U);
  EXPECT_EQ(flow_of(link_of(125e6, 60e-3, 0), kLimit).sockets, 3U) << "a socket carries what the kernel's send buffer holds";
}

TEST(Flow, TheMemoryLimitBindsEvenBelowTheSmallestWindow) {
  EXPECT_EQ(flow_of(link_of(125e6, 60e-3, kSocketBytes), kMiB).window_bytes, kMiB);
  EXPECT_EQ(flow_of(link_of(3e9, 16e-6, kSocketBytes), kMiB).window_bytes, kMiB);
}

TEST(Flow, OrderTurnsAtAMillisecond) {
  EXPECT_EQ(flow_of(link_of(125e6, 0.99e-3, 0), kLimit).order, StepOrder::skewed);
  EXPECT_EQ(flow_of(link_of(125e6, 1e-3, 0), kLimit).order, StepOrder::readiness);
}

}  // namespace
}  // namespace seto
