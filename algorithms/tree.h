#pragma once

#include "algorithms/algorithm.h"

namespace seto {

// A binary tree over positions 0 … n - 1 in order: leaves at even positions, inner nodes at odd ones (except the root of an odd
// rest). In a tree shifted by one position, leaves and inner nodes exchange roles, so two such trees load all members equally.
struct TreeNode {
  int parent = -1;
  int left = -1;
  int right = -1;
  int depth = 0;
};
TreeNode tree_node(int position, int size);
int tree_depth(int size);  // of its deepest leaf

// Sums move up the tree whose position p is group[p + shift], results move down. The depth decides the round.
void tree_reduce(Builder& builder, const Group& group, int shift, Range range);
void tree_broadcast(Builder& builder, const Group& group, int shift, Range range);
int tree_root(int size);

void build_double_tree_all_reduce(Builder& builder, const Tiers& tiers);
void build_tree_broadcast(Builder& builder, const Tiers& tiers);
void build_tree_reduce(Builder& builder, const Tiers& tiers);

PlanLoad double_tree_all_reduce_load(const Tiers& tiers);
PlanLoad tree_broadcast_load(const Tiers& tiers);
PlanLoad tree_reduce_load(const Tiers& tiers);

}  // namespace seto
