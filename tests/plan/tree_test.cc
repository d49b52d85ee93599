#include "algorithms/tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <vector>

namespace seto {
namespace {

bool is_inner(const TreeNode& node) { return node.left >= 0 || node.right >= 0; }

class Tree : public testing::TestWithParam<int> {};

TEST_P(Tree, EveryPositionIsReachedOnce) {
  const int size = GetParam();
  int roots = 0;
  int children = 0;
  for (int position = 0; position < size; ++position) {
    const TreeNode node = tree_node(position, size);
    if (node.parent < 0) {
      ++roots;
      EXPECT_EQ(position, tree_root(size));
      EXPECT_EQ(node.depth, 0);
    } else {
      const TreeNode parent = tree_node(node.parent, size);
      EXPECT_TRUE(parent.left == position || parent.right == position);
      EXPECT_EQ(node.depth, parent.depth + 1);
    }
    for (const int child : {node.left, node.right}) {
      if (child < 0) continue;
      ++children;
      EXPECT_EQ(tree_node(child, size).parent, position);
    }
    if (node.left >= 0) {
      EXPECT_LT(node.left, position);
    }
    if (node.right >= 0) {
      EXPECT_GT(node.right, position);
    }
  }
  EXPECT_EQ(roots, 1);
  EXPECT_EQ(children, size - 1);
}

TEST_P(Tree, DepthIsThatOfTheDeepestLeafAndLogarithmic) {
  const int size = GetParam();
  int deepest = 0;
  for (int position = 0; position < size; ++position) deepest = std::max(deepest, tree_node(position, size).depth);
  EXPECT_EQ(tree_depth(size), deepest);
  EXPECT_LE(deepest, static_cast<int>(std::bit_width(static_cast<unsigned>(size))));
}

// Member m has position m in one tree and m - 1 in the other.
TEST_P(Tree, ShiftedByOneNoMemberIsAnInnerNodeTwice) {
  const int size = GetParam();
  if (size % 2 != 0) return;
  int inner = 0;
  for (int member = 0; member < size; ++member) {
    const bool first = is_inner(tree_node(member, size));
    const bool second = is_inner(tree_node((member + size - 1) % size, size));
    EXPECT_FALSE(first && second) << member;
    inner += (first ? 1 : 0) + (second ? 1 : 0);
  }
  EXPECT_GE(inner, size - 2);  // nearly every member is an inner node once
}

INSTANTIATE_TEST_SUITE_P(Sizes, Tree,
                         testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 17, 18, 31, 32, 33, 64, 100, 1000, 1024));

}  // namespace
}  // namespace seto
