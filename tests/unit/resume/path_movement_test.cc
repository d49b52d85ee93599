#include "transports/resume/path_movement.h"

#include <gtest/gtest.h>

namespace seto::resume {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kStall = 200 * kMs;
constexpr std::uint64_t kRoundTrip = 60 * kMs;

TEST(PathMovement, OnlyTimeSinceTheFirstLookCounts) {
  PathMovement movement;
  movement.begin(1'000, 5'000 * kMs);
  EXPECT_FALSE(movement.stands_still(kStall, 5'000 * kMs));
  EXPECT_FALSE(movement.stands_still(kStall, 5'199 * kMs));
  EXPECT_TRUE(movement.stands_still(kStall, 5'200 * kMs));
  movement.begin(1'000, 9'000 * kMs);
  EXPECT_FALSE(movement.stands_still(kStall, 9'100 * kMs)) << "the link has made progress in between";
}

TEST(PathMovement, AnAcknowledgementBeginsTheTimeAgain) {
  PathMovement movement;
  movement.begin(1'000, 0);
  movement.look(1'001, true, 150 * kMs);
  EXPECT_FALSE(movement.stands_still(kStall, 349 * kMs));
  EXPECT_TRUE(movement.stands_still(kStall, 350 * kMs));
  EXPECT_FALSE(movement.sends_in_vain(kRoundTrip, 350 * kMs)) << "what was sent again has been answered";
}

// A timeout of the kernel that is too early is answered within a round trip.
TEST(PathMovement, WhatWasSentAgainHasARoundTripToBeAnswered) {
  PathMovement movement;
  movement.begin(1'000, 0);
  movement.look(1'000, false, 250 * kMs);
  EXPECT_FALSE(movement.sends_in_vain(kRoundTrip, 250 * kMs));
  movement.look(1'000, true, 300 * kMs);
  EXPECT_FALSE(movement.sends_in_vain(kRoundTrip, 300 * kMs));
  movement.look(1'000, true, 350 * kMs);
  EXPECT_FALSE(movement.sends_in_vain(kRoundTrip, 350 * kMs));
  EXPECT_TRUE(movement.sends_in_vain(kRoundTrip, 360 * kMs));
  movement.look(1'000, false, 400 * kMs);
  EXPECT_FALSE(movement.sends_in_vain(kRoundTrip, 500 * kMs)) << "an acknowledgement of no bytes came";
}

}  // namespace
}  // namespace seto::resume
