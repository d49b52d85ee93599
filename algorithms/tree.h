#pragma once

#include "algorithms/algorithm.h"

namespace seto {

// A binary tree over positions 0 … n - 1, in order: leaves at even positions, inner nodes at odd ones (but for the root of an odd
// rest). Shifted by one place, leaves and inner nodes change roles: two such trees load every member alike.
struct TreeNode {
  int parent = -1;
  int left = -1;
  int right = -1;
  int depth = 0;
};
TreeNode tree_node(int position, int size);
int tree_depth(int size);  // of its deepest leaf

// Sums travel up the tree whose position p is group[p + shift], results travel down. Depth decides the round.
void tree_reduce(Builder& builder, const Group& group, int shift, Range range);
void tree_broadcast(Builder& builder, const Group& group, int shift, Range range);
int tree_root(int size);

void build_double_tree_all_reduce(Builder& builder, const Tiers& tiers);
void build_tree_broadcast(Builder& builder, const Tiers& tiers);
void build_tree_reduce(Builder& builder, const Tiers& tiers);

}  // namespace seto
