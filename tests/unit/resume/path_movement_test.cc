#include "transports/resume/path_movement.h"

#include <gtest/gtest.h>

namespace seto::resume {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kStall = 200 * kMs;
constexpr std::uint64_t kRoundTrip = 60 * kMs;

constexpr PathMovement::Seen idle(std::uint64_t acknowledged) { return {acknowledged, false, false}; }
constexpr PathMovement::Seen waiting(std::uint64_t acknowledged) { return {acknowledged, true, false}; }
constexpr PathMovement::Seen in_vain(std::uint64_t acknowledged) { return {acknowledged, true, true}; }

TEST(PathMovement, OnlyTimeSinceTheFirstLookCounts) {
  PathMovement movement;
  movement.begin(waiting(1'000), 5'000 * kMs);
  EXPECT_FALSE(movement.stands_still(kStall, 5'000 * kMs));
  EXPECT_FALSE(movement.stands_still(kStall, 5'199 * kMs));
  EXPECT_TRUE(movement.stands_still(kStall, 5'200 * kMs));
  movement.begin(waiting(1'000), 9'000 * kMs);
  EXPECT_FALSE(movement.stands_still(kStall, 9'100 * kMs)) << "the link has made progress in between";
}

TEST(PathMovement, AnAcknowledgementBeginsTheTimeAgain) {
  PathMovement movement;
  movement.begin(waiting(1'000), 0);
  EXPECT_FALSE(movement.was_answered());
  movement.look(in_vain(1'001), 150 * kMs);
  EXPECT_TRUE(movement.was_answered());
  EXPECT_FALSE(movement.stands_still(kStall, 349 * kMs));
  EXPECT_TRUE(movement.stands_still(kStall, 350 * kMs));
  EXPECT_FALSE(movement.is_unanswered(kStall, 349 * kMs));
  EXPECT_TRUE(movement.is_unanswered(kStall, 350 * kMs));
  EXPECT_FALSE(movement.sends_in_vain(kRoundTrip, 350 * kMs)) << "what was sent again has been answered";
  movement.begin(waiting(1'001), 400 * kMs);
  EXPECT_FALSE(movement.was_answered()) << "not since then";
}

// A timeout of the kernel that is too early is answered within a round trip.
TEST(PathMovement, WhatWasSentAgainHasARoundTripToBeAnswered) {
  PathMovement movement;
  movement.begin(waiting(1'000), 1 * kMs);
  movement.look(waiting(1'000), 250 * kMs);
  EXPECT_FALSE(movement.sends_in_vain(kRoundTrip, 250 * kMs));
  movement.look(in_vain(1'000), 300 * kMs);
  EXPECT_FALSE(movement.sends_in_vain(kRoundTrip, 300 * kMs));
  movement.look(in_vain(1'000), 350 * kMs);
  EXPECT_FALSE(movement.sends_in_vain(kRoundTrip, 350 * kMs));
  EXPECT_TRUE(movement.sends_in_vain(kRoundTrip, 360 * kMs));
  movement.look(waiting(1'000), 400 * kMs);
  EXPECT_FALSE(movement.sends_in_vain(kRoundTrip, 500 * kMs)) << "an acknowledgement of no bytes came";
}

// The peer's kernel has acknowledged everything, and then a frame was sent: it is not late yet.
TEST(PathMovement, BytesThatWereSentJustNowAreNotUnanswered) {
  PathMovement movement;
  movement.begin(idle(1'000), 1 * kMs);
  movement.look(idle(1'000), 150 * kMs);
  movement.look(waiting(1'000), 195 * kMs);
  EXPECT_TRUE(movement.stands_still(kStall, 201 * kMs));
  EXPECT_FALSE(movement.is_unanswered(kStall, 201 * kMs));
  EXPECT_FALSE(movement.is_unanswered(kStall, 394 * kMs));
  EXPECT_TRUE(movement.is_unanswered(kStall, 395 * kMs));
  movement.look(idle(1'000), 396 * kMs);
  EXPECT_FALSE(movement.is_unanswered(kStall, 900 * kMs)) << "nothing waits";
}

}  // namespace
}  // namespace seto::resume
