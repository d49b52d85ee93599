#include "transports/rdma/link/interval_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/support/seed.h"

namespace seto::rdma {
namespace {

using Tree = IntervalTree<int>;

TEST(IntervalTree, FindsWhatContainsAllAddresses) {
  Tree tree;
  EXPECT_EQ(tree.containing(1, 2), nullptr);
  tree.insert({100, 200, 1});
  ASSERT_NE(tree.containing(100, 200), nullptr);
  EXPECT_EQ(tree.containing(150, 151)->value, 1);
  EXPECT_EQ(tree.containing(99, 101), nullptr);
  EXPECT_EQ(tree.containing(199, 201), nullptr);
  EXPECT_EQ(tree.containing(150, 150), nullptr);
  EXPECT_EQ(tree.containing(~std::uint64_t{0} - 1, 150), nullptr) << "the end has wrapped";
}

TEST(IntervalTree, TwoThatMeetContainNothingAcrossTheirBorder) {
  Tree tree;
  tree.insert({100, 200, 1});
  tree.insert({200, 300, 2});
  EXPECT_EQ(tree.containing(150, 250), nullptr);
  tree.insert({50, 400, 3});
  ASSERT_NE(tree.containing(150, 250), nullptr);
  EXPECT_EQ(tree.containing(150, 250)->value, 3);
}

TEST(IntervalTree, AgreesWithASearchThroughAll) {
  std::mt19937_64 random(testing::chosen_seed());
  Tree tree;
  std::vector<Tree::Interval> all;
  std::size_t found = 0, missed = 0;
  for (int step = 0; step < 4'000; ++step) {
    const std::uint64_t begin = random() % 1'000, end = begin + 1 + random() % 60;
    if (random() % 8 == 0 && all.size() < 60) {
      all.push_back({begin, end, step});
      tree.insert(all.back());
    } else if (random() % 12 == 0 && !all.empty()) {
      const int gone = all[random() % all.size()].value;
      const auto is_gone = [&](const Tree::Interval& each) { return each.value == gone; };
      std::erase_if(all, is_gone);
      tree.erase_if(is_gone);
    }
    ASSERT_EQ(tree.size(), all.size());
    const auto contains = [&](const Tree::Interval& each) { return each.begin <= begin && each.end >= end; };
    const bool expected = std::any_of(all.begin(), all.end(), contains);
    const Tree::Interval* const answer = tree.containing(begin, end);
    ASSERT_EQ(answer != nullptr, expected) << "step " << step;
    ASSERT_TRUE(answer == nullptr || contains(*answer));
    ++(expected ? found : missed);
  }
  EXPECT_GT(found, 100U);
  EXPECT_GT(missed, 100U);
}

}  // namespace
}  // namespace seto::rdma
