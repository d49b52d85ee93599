// When an acknowledgement is due.

#include "transports/resume/acknowledgement_policy.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace seto::resume {
namespace {

constexpr std::uint64_t kWindow = 8'000;
constexpr std::uint64_t kStartNs = 1'000'000'000;
constexpr std::uint64_t kLongestNs = AcknowledgementPolicy::kLongestNs;

TEST(AcknowledgementPolicy, NothingIsDueWhereNothingArrived) {
  AcknowledgementPolicy policy(kWindow);
  EXPECT_EQ(policy.due_ns(), AcknowledgementPolicy::kNever);
  EXPECT_FALSE(policy.due(~std::uint64_t{0}));
}

TEST(AcknowledgementPolicy, AnEighthOfAWindowIsToldAtOnce) {
  AcknowledgementPolicy policy(kWindow);
  policy.arrived(999, kStartNs);
  EXPECT_FALSE(policy.due(kStartNs));
  policy.arrived(1, kStartNs);
  EXPECT_TRUE(policy.due(kStartNs));
  policy.told();
  EXPECT_EQ(policy.due_ns(), AcknowledgementPolicy::kNever);
}

TEST(AcknowledgementPolicy, TheFirstFrameWaitsForTenMilliseconds) {
  AcknowledgementPolicy policy(kWindow);
  policy.arrived(1, kStartNs);
  policy.arrived(1, kStartNs + kLongestNs - 1);
  EXPECT_FALSE(policy.due(kStartNs + kLongestNs - 1));
  EXPECT_TRUE(policy.due(kStartNs + kLongestNs)) << "a later frame must not put it off";
  policy.told();
  policy.arrived(1, kStartNs + 3 * kLongestNs);
  EXPECT_EQ(policy.due_ns(), kStartNs + 4 * kLongestNs);
}

TEST(AcknowledgementPolicy, WhatMayBeLostIsToldAgain) {
  AcknowledgementPolicy policy(kWindow);
  policy.tell_again();
  EXPECT_TRUE(policy.due(kStartNs));
  policy.arrived(1, kStartNs);
  EXPECT_TRUE(policy.due(kStartNs)) << "a frame that arrives meanwhile must not put it off";
  policy.told();
  EXPECT_FALSE(policy.due(kStartNs + kLongestNs));
}

TEST(AcknowledgementPolicy, ATinyWindowIsToldWithEachFrame) {
  AcknowledgementPolicy policy(1);
  policy.arrived(64, kStartNs);
  EXPECT_TRUE(policy.due(kStartNs));
}

}  // namespace
}  // namespace seto::resume
