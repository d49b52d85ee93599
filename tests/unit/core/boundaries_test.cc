#include "src/core/choice/boundaries.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace seto {
namespace {

constexpr double kKiB = 1024;

TEST(Boundaries, AMessageIsLentWhereACopyOfItTakesLongerThanHalfAHop) {
  const TierCost node{0.8e-6, 50e9};
  EXPECT_DOUBLE_EQ(long_message_bytes_of(node), 20e3);
  TierCost slow_to_copy = node;
  slow_to_copy.bytes_per_second /= 2;
  EXPECT_DOUBLE_EQ(long_message_bytes_of(slow_to_copy), 10e3) << "the copy costs more, so shorter messages are lent";
  TierCost slow_to_answer = node;
  slow_to_answer.latency_seconds *= 3;
  EXPECT_DOUBLE_EQ(long_message_bytes_of(slow_to_answer), 60e3) << "a lent message costs more, so longer ones are copied";
}

TEST(Boundaries, AWrongMeasurementMovesNoBoundaryFar) {
  for (const double factor : {1e-9, 1e-3, 1e3, 1e9}) {
    EXPECT_GE(long_message_bytes_of({0.4e-6 * factor, 50e9}), 8 * kKiB) << factor;
    EXPECT_LE(long_message_bytes_of({0.4e-6, 50e9 * factor}), 128 * kKiB) << factor;
  }
  EXPECT_DOUBLE_EQ(long_message_bytes_of({0, 50e9}), 8 * kKiB);
}

TEST(Boundaries, LendingIsMeasuredWithinANodeOnly) {
  const Tiers tiers = made_up_tiers(4, 2, 1).value();  // ranks 0 and 1, 2 and 3
  CostModel costs;
  double crowding = 1;
  const auto boundary = [&](Rank sender, const std::vector<std::uint32_t>& receivers) {
    return lends_from(sender, receivers, tiers, crowding, costs);
  };
  EXPECT_EQ(boundary(0, {1}), 16U << 10) << "shipped";
  costs.node.long_message_bytes = 20'000;
  EXPECT_EQ(boundary(0, {1}), 20'000U);
  EXPECT_EQ(boundary(3, {2}), 20'000U);
  EXPECT_EQ(boundary(0, {2}), 16U << 10);
  EXPECT_EQ(boundary(0, {1, 3}), 16U << 10) << "one of the receivers is on another host";
  costs.node.long_message_bytes = 0;
  EXPECT_EQ(boundary(0, {1}), 16U << 10) << "not known, as of GPUs";
  crowding = 2;
  for (const auto& [measured, expected] : {std::pair{9'000.0, 16U << 10}, {20'000.0, 20'000U}}) {
    costs.node.long_message_bytes = measured;
    EXPECT_EQ(boundary(0, {1}), expected) << "a reader that shares its core may answer late";
  }
}

TEST(Boundaries, TheLargestSliceFollowsFromTheCache) {
  CostModel costs;
  const auto largest = [&](double cached_bytes, bool passes_on) {
    costs.node.cached_bytes = cached_bytes;
    return largest_slice(passes_on, Tiers::flat(4), costs);
  };
  EXPECT_EQ(largest(1 << 20, false), 256U << 10) << "shipped";
  EXPECT_EQ(largest(1 << 20, true), 512U << 10);
  EXPECT_EQ(largest(2 << 20, false), 512U << 10);
  EXPECT_EQ(largest(512 << 10, false), 128U << 10);
  EXPECT_EQ(largest(512 << 10, true), 256U << 10);
  EXPECT_EQ(largest(1, false), 64U << 10) << "no machine is that small";
  EXPECT_EQ(largest(1e12, false), 1U << 20) << "slots are memory";
  EXPECT_EQ(largest(1e12, true), 2U << 20);
  EXPECT_EQ(largest(0, true), 256U << 10) << "the cache is not known";
  costs.node.cached_bytes = 4 << 20;
  EXPECT_EQ(largest_slice(false, made_up_tiers(4, 2, 1).value(), costs), 256U << 10) << "there are hosts";
}

TEST(Boundaries, WaysOfStoringFollowFromTheCaches) {
  TierCost node = CostModel().node;
  EXPECT_EQ(store_sizes(node), StoreSizes()) << "shipped";
  EXPECT_EQ(store_sizes({}), StoreSizes()) << "nothing is known";
  node.cached_bytes = 2 << 20;
  node.last_level_bytes = 96 << 20;
  EXPECT_EQ(store_sizes(node), (StoreSizes{2 << 20, 32 << 20})) << "half of 96 MiB, in a power of two";
  node.cached_bytes = 512 << 10;
  node.last_level_bytes = 12 << 20;
  EXPECT_EQ(store_sizes(node), (StoreSizes{512 << 10, 4 << 20}));
  EXPECT_EQ(store_sizes({.cached_bytes = 1, .last_level_bytes = 1}), (StoreSizes{256 << 10, 4 << 20}));
  EXPECT_EQ(store_sizes({.cached_bytes = 1e15, .last_level_bytes = 1e15}), (StoreSizes{4 << 20, 64 << 20}));
}

}  // namespace
}  // namespace seto
