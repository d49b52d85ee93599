#include "transports/shm/core_caches.h"

#include <gtest/gtest.h>

namespace seto {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr CoreCaches kCaches{kMiB, 32 * kMiB};

TEST(CoreCaches, SlotsMoveOnThroughMoreThanTheCacheOfACore) { EXPECT_EQ(room_to_move_on(kCaches, 2, 1), 4 * kMiB); }

TEST(CoreCaches, AllMembersTogetherTakeAtMostAHalfOfTheLastLevel) { EXPECT_EQ(room_to_move_on(kCaches, 8, 0.5), 2 * kMiB); }

TEST(CoreCaches, SlotsStayWhereTheRoomWouldFitTheCacheOfACore) { EXPECT_EQ(room_to_move_on(kCaches, 9, 1), 0U); }

TEST(CoreCaches, SlotsStayWhereMembersShareCores) {
  EXPECT_EQ(room_to_move_on(kCaches, 2, 1.5), 0U);
  EXPECT_EQ(room_to_move_on(kCaches, 1, 1), 0U);
}

TEST(CoreCaches, SlotsStayWhereTheCachesAreUnknown) {
  EXPECT_EQ(room_to_move_on({0, 32 * kMiB}, 2, 1), 0U);
  EXPECT_EQ(room_to_move_on({kMiB, 0}, 2, 1), 0U);
}

}  // namespace
}  // namespace seto
