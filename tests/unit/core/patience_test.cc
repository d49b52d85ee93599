#include "src/core/progress/patience.h"

#include <gtest/gtest.h>

namespace seto {
namespace {

constexpr std::uint32_t kYields = 32;  // between two inspections

// Calls lasts() until an inspection is due, and returns the number of calls.
std::uint32_t calls_until_inspection(Patience& patience) {
  for (std::uint32_t calls = 1; calls < 10'000; ++calls)
    if (patience.lasts()) return calls;
  return 0;
}

TEST(Patience, YieldsAtOnceWithoutSpins) {
  const std::atomic<std::uint32_t> spins{0};
  Patience patience(spins);
  for (int round = 0; round < 3; ++round) EXPECT_EQ(calls_until_inspection(patience), kYields);
}

TEST(Patience, SpinsOnceThenOnlyYields) {
  const std::atomic<std::uint32_t> spins{100};
  Patience patience(spins);
  EXPECT_EQ(calls_until_inspection(patience), 100 + kYields);
  EXPECT_EQ(calls_until_inspection(patience), kYields);
}

TEST(Patience, SpinsAgainAfterAMove) {
  const std::atomic<std::uint32_t> spins{100};
  Patience patience(spins);
  EXPECT_EQ(calls_until_inspection(patience), 100 + kYields);
  EXPECT_FALSE(patience.moved());
  EXPECT_EQ(calls_until_inspection(patience), 100 + kYields);
}

// Ranks that outnumber cores stop spinning, also in a wait that has begun.
TEST(Patience, FollowsANumberOfSpinsThatChanges) {
  std::atomic<std::uint32_t> spins{1'000'000};
  Patience patience(spins);
  for (int call = 0; call < 10; ++call) EXPECT_FALSE(patience.lasts());
  spins = 0;
  EXPECT_EQ(calls_until_inspection(patience), kYields);
}

TEST(Patience, AsksForAnInspectionAfterManyMoves) {
  const std::atomic<std::uint32_t> spins{0};
  Patience patience(spins);
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t move = 1; move < kMovesBetweenLooks; ++move) ASSERT_FALSE(patience.moved()) << move;
    EXPECT_TRUE(patience.moved());
  }
}

TEST(Patience, IsTiredAfterYieldingForAWhileAndNotAfterAMove) {
  constexpr std::uint64_t kAtLeastNs = 200'000;
  constexpr std::uint64_t kLimitNs = 10'000'000'000;
  const std::atomic<std::uint32_t> spins{0};
  Patience patience(spins);
  for (int round = 0; round < 2; ++round) {
    const std::uint64_t start = monotonic_ns();
    EXPECT_FALSE(patience.tired()) << "the wait has just begun";
    while (!patience.tired()) ASSERT_LT(monotonic_ns() - start, kLimitNs);
    EXPECT_GT(monotonic_ns() - start, kAtLeastNs);
    patience.moved();
  }
}

TEST(Patience, IsTiredAtOnceWhenItWaitsForWhatComesFromAfar) {
  const std::atomic<std::uint32_t> spins{1'000'000};
  Patience patience(spins);
  EXPECT_TRUE(patience.lasts(true));
  EXPECT_TRUE(patience.tired());
  EXPECT_FALSE(patience.lasts()) << "it spins, because what it waits for is near now";
  EXPECT_FALSE(patience.tired());
}

}  // namespace
}  // namespace seto
