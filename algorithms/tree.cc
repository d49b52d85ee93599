#include "algorithms/tree.h"

#include <algorithm>
#include <bit>

namespace seto {
namespace {

// Of positions first … first + size - 1: the left subtree is perfect, so its leaves lie at even distances from `first`.
int root_of(int first, int size) { return first + static_cast<int>(std::bit_floor(static_cast<unsigned>(size))) - 1; }

Rank member(const Group& group, int shift, int position) { return group[position + shift]; }

// The built rank's position, if it is a member: the statements around it are its own as parent and its parent's.
std::vector<int> positions_of_interest(const Group& group, int shift) {
  std::vector<int> parents;
  for (const int own : group.touching({shift})) {
    const TreeNode node = tree_node(own, group.size());
    if (node.parent >= 0) parents.push_back(node.parent);
    parents.push_back(own);
  }
  return parents;
}

}  // namespace

int tree_root(int size) { return root_of(0, size); }

int tree_depth(int size) {
  int depth = 0;
  for (int first = 0; size > 1; ++depth) {
    const int root = root_of(first, size);
    const int left = root - first;
    const int right = size - left - 1;
    size = std::max(left, right);  // the left is perfect, so the deeper side is the wider one
  }
  return depth;
}

TreeNode tree_node(int position, int size) {
  TreeNode node;
  int first = 0;
  for (;;) {
    const int root = root_of(first, size);
    const int left = root - first;
    const int right = size - left - 1;
    if (position == root) {
      if (left > 0) node.left = root_of(first, left);
      if (right > 0) node.right = root_of(root + 1, right);
      return node;
    }
    node.parent = root;
    ++node.depth;
    if (position > root) first = root + 1;
    size = position < root ? left : right;
  }
}

void tree_reduce(Builder& builder, const Group& group, int shift, Range range) {
  const auto base = static_cast<int>(builder.round());
  const int deepest = tree_depth(group.size());
  auto parents = positions_of_interest(group, shift);
  std::reverse(parents.begin(), parents.end());  // own children first: deeper, so earlier
  for (const int parent : parents) {
    const TreeNode node = tree_node(parent, group.size());
    if (node.left < 0 && node.right < 0) continue;
    std::vector<Rank> sources;
    if (node.left >= 0) sources.push_back(member(group, shift, node.left));
    sources.push_back(member(group, shift, parent));
    if (node.right >= 0) sources.push_back(member(group, shift, node.right));
    builder.set_round(static_cast<std::uint32_t>(base + deepest - node.depth - 1));
    builder.reduce(member(group, shift, parent), sources, range);
  }
  builder.set_round(static_cast<std::uint32_t>(base + deepest));
}

void tree_broadcast(Builder& builder, const Group& group, int shift, Range range) {
  const auto base = static_cast<int>(builder.round());
  for (const int parent : positions_of_interest(group, shift)) {
    const TreeNode node = tree_node(parent, group.size());
    builder.set_round(static_cast<std::uint32_t>(base + node.depth));
    for (const int child : {node.left, node.right})
      if (child >= 0) builder.copy(member(group, shift, parent), member(group, shift, child), range);
  }
  builder.set_round(static_cast<std::uint32_t>(base + tree_depth(group.size())));
}

void build_double_tree_all_reduce(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  const std::uint32_t begin = builder.round();
  for (const int tree : {0, 1}) {
    const Range half = builder.everything().part(tree, 2);
    builder.set_round(begin);
    tree_reduce(builder, all, tree, half);
    builder.finish(all[tree_root(all.size()) + tree], half);
    builder.round(all[tree_root(all.size()) + tree], half);
    tree_broadcast(builder, all, tree, half);
  }
}

void build_tree_broadcast(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  tree_broadcast(builder, all, builder.shape().root - tree_root(all.size()), builder.everything());
}

void build_tree_reduce(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  tree_reduce(builder, all, builder.shape().root - tree_root(all.size()), builder.everything());
  builder.finish(builder.shape().root, builder.everything());
}

}  // namespace seto
