#include "transports/shm/core_caches.h"

#include <gtest/gtest.h>

namespace seto {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(CoreCaches, SlotsMoveOnThroughMoreThanTheCacheOfACore) { EXPECT_EQ(room_to_move_on({2, kMiB, 32 * kMiB}, 2), 4 * kMiB); }

TEST(CoreCaches, AllMembersTogetherTakeAtMostAHalfOfTheLastLevel) {
  EXPECT_EQ(room_to_move_on({64, kMiB, 32 * kMiB}, 8), 2 * kMiB);
  EXPECT_EQ(room_to_move_on({64, kMiB, 32 * kMiB}, 64), kMiB / 4);
}

TEST(CoreCaches, SlotsStayWhereMembersShareCores) {
  EXPECT_EQ(room_to_move_on({2, kMiB, 32 * kMiB}, 3), 0U);
  EXPECT_EQ(room_to_move_on({2, kMiB, 32 * kMiB}, 1), 0U);
}

TEST(CoreCaches, UnknownSizesAreAssumed) { EXPECT_EQ(room_to_move_on({4, 0, 0}, 2), 4 * kMiB); }

TEST(CoreCaches, ThisMachineHasCores) { EXPECT_GE(core_caches().cores, 1U); }

}  // namespace
}  // namespace seto
