#include "src/plan/group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace seto {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Range, PartsCoverItInOrderAndDifferByOneAtMost) {
  for (const std::uint32_t count : {0U, 1U, 5U, 12U, 17U})
    for (const int parts : {1, 2, 3, 5, 16}) {
      std::uint32_t next = 3;
      for (int i = 0; i < parts; ++i) {
        const Range part = Range{3, count}.part(i, parts);
        EXPECT_EQ(part.first, next);
        EXPECT_GE(part.count, count / static_cast<std::uint32_t>(parts));
        EXPECT_LE(part.count, count / static_cast<std::uint32_t>(parts) + 1);
        next += part.count;
      }
      EXPECT_EQ(next, 3 + count);
    }
}

TEST(Group, WrapsAroundInBothDirections) {
  const Group group({4, 7, 9}, 1, 7);
  EXPECT_EQ(group[0], 4);
  EXPECT_EQ(group[3], 4);
  EXPECT_EQ(group[-1], 9);
  EXPECT_EQ(group[-4], 9);
}

TEST(Group, ViewsListTheIndicesOfTheBuiltRank) {
  const Group group({4, 7, 9, 2}, 1, 9);
  EXPECT_EQ(group.built_index(), 2);
  EXPECT_THAT(group.own(), ElementsAre(2));
  EXPECT_THAT(group.touching({0, 1}), ElementsAre(1, 2));  // 9 is at i or at i + 1
  EXPECT_THAT(group.touching({0, 4}), ElementsAre(2));     // both give the same index
  EXPECT_THAT(group.touching({-1, 3}), ElementsAre(3));
  EXPECT_THAT(group.from_own(), ElementsAre(3, 0, 1, 2));
  EXPECT_THAT(group.spokes(2), ElementsAre(3, 0, 1));
  EXPECT_THAT(group.spokes(0), ElementsAre(2));
}

TEST(Group, ViewsOfARankOutsideAreEmpty) {
  const Group group({4, 7}, 1, 5);
  EXPECT_FALSE(group.includes_built());
  EXPECT_THAT(group.own(), IsEmpty());
  EXPECT_THAT(group.touching({0, 1, 2}), IsEmpty());
  EXPECT_THAT(group.from_own(), IsEmpty());
  EXPECT_THAT(group.spokes(0), IsEmpty());
}

TEST(Group, AllHoldsEveryRankOnce) {
  const Shape shape{Collective::all_reduce, 3, 0, 1, Finish::none};
  const Group all = Group::all(shape, 1);
  EXPECT_THAT(all.members(), ElementsAre(0, 1, 2));
  EXPECT_EQ(all.built_index(), 1);
}

}  // namespace
}  // namespace seto
