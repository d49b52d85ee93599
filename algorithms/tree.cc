#include "algorithms/tree.h"

#include <algorithm>
#include <bit>

namespace seto {
namespace {

// For positions first … first + size - 1: the left subtree is perfect, so its leaves are at even distances from `first`.
int root_of(int first, int size) { return first + static_cast<int>(std::bit_floor(static_cast<unsigned>(size))) - 1; }

Rank member(const Group& group, int shift, int position) { return group[position + shift]; }

// The built rank's position, if it is a member: its statements are those in which it is the parent, and those of its parent.
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

namespace {

// TierLoad::average of `passes` trees up or down, where the busiest rank has `messages`. Each edge is a send and a receive.
double average_of_trees(const Tiers& tiers, double passes, double messages) {
  const double ranks = tiers.ranks();
  return messages > 0 ? std::min(1.0, passes * 2 * (ranks - 1) / (ranks * messages)) : 1;
}

// Edges of a tree from a parent in each site to a child elsewhere (up) and from a parent elsewhere (down). Where the borders of
// sites fall in a tree follows no short formula, so its edges are counted.
std::vector<PortRates> edges_between_sites(const Tiers& tiers, int shift) {
  std::vector<PortRates> edges(static_cast<std::size_t>(tiers.size(tiers.count() - 1)));
  const int ranks = tiers.ranks();
  const auto site = [&](int position) {
    return static_cast<std::size_t>(tiers.member_of(((position + shift) % ranks + ranks) % ranks));
  };
  for (int position = 0; position < ranks; ++position) {
    const int parent = tree_node(position, ranks).parent;
    if (parent < 0 || site(parent) == site(position)) continue;
    ++edges[site(parent)].up;
    ++edges[site(position)].down;
  }
  return edges;
}

// TierLoad::shared of data that goes down one tree from rank 0, or up to it.
double shared_along_a_tree(const Tiers& tiers, bool goes_up) {
  if (tiers.widest() != TierKind::world) return 0;
  const std::vector<PortRates> edges = edges_between_sites(tiers, -tree_root(tiers.ranks()));
  return shared_by_members(tiers, [&](std::size_t i) { return goes_up ? PortRates{edges[i].down, edges[i].up} : edges[i]; });
}

// The same of both halves of an all_reduce, which go up and down a tree each.
double shared_along_both_trees(const Tiers& tiers) {
  if (tiers.widest() != TierKind::world) return 0;
  const std::vector<PortRates> one = edges_between_sites(tiers, 0);
  const std::vector<PortRates> other = edges_between_sites(tiers, 1);
  return shared_by_members(tiers, [&](std::size_t i) {
    const double halves = one[i].up + one[i].down + other[i].up + other[i].down;
    return PortRates{halves / 2, halves / 2};
  });
}

}  // namespace

// Each half of the data has a tree, and an inner rank of one is a leaf of the other. Memory, in halves: as inner rank it sums
// three vectors into a slot (4) and copies the result to its output and two slots (4), as leaf it copies into a slot (2) and out
// of one (2); two or three ranks have a root and leaves alone. A slice goes from a leaf (2) up
// and down the ranks above it (4 and 4, the root 5) to a leaf (2). Wire: two children send a half each, and both results come in;
// what goes out is the same backwards. Coded: the sums of the children are decoded and one is encoded, one leaf is encoded, and
// two results are decoded. Messages: one each way between a
// rank and its children, its parent, and its parent as a leaf of the other tree. Two ranks relay nothing: each is the root of one
// half and busy all the time. As relays they got shorter slices, and 64 KiB over TCP loopback took 43 us instead of 26.
PlanLoad double_tree_all_reduce_load(const Tiers& tiers) {
  const double depth = tree_depth(tiers.ranks());
  const double children = std::min(2, tiers.ranks() - 1);
  return load_on_widest(tiers,
                        {.hops = 2 * depth,
                         .relays = children > 1 ? depth : 0,
                         .wire = depth > 1 ? 2 : (1 + children) / 2,
                         .shared = shared_along_both_trees(tiers),
                         .coded = 2 + children / 2,
                         .messages = 2 * children + 2 * std::min(depth, 2.0),
                         .average = average_of_trees(tiers, 4, 2 * children + 2 * std::min(depth, 2.0))},
                        {.memory = depth > 1 ? (4 + 4 + 2 + 2) / 2.0 : 3 + children,
                         .sent = depth > 1 ? (1 + 2 + 1) / 2.0 : (children + 1) / 2,
                         .received = depth > 1 ? (2 + 1 + 1) / 2.0 : (children + 1) / 2,
                         .steps = 2 + children,
                         .path = (2 + 8 * depth - 3 + 2) / 2,
                         .peers = children + 2});  // an inner rank of one tree is a leaf of the other
}

// Memory: an inner rank reads a slot and writes its output and a slot for each of two children; a leaf copies (2). Wire: it sends
// to both.
PlanLoad tree_broadcast_load(const Tiers& tiers) {
  const double depth = tree_depth(tiers.ranks());
  const double children = std::min(2, tiers.ranks() - 1);
  const double messages = children + (depth > 1 ? 1 : 0);
  return load_on_widest(tiers,
                        {.hops = depth,
                         .relays = depth,
                         .wire = children,
                         .shared = shared_along_a_tree(tiers, false),
                         .messages = messages,
                         .average = average_of_trees(tiers, 1, messages)},
                        {.memory = 2 + children,
                         .sent = children,
                         .received = messages - children,
                         .steps = 1,
                         .path = depth * (2 + children) + 2,
                         .peers = messages});
}

// Memory: an inner rank reads the slots of two children and its input and writes a slot; a leaf copies (2). Wire: both send to
// it. Coded: it decodes what they send and, unless it is the root, encodes the sum.
PlanLoad tree_reduce_load(const Tiers& tiers) {
  const double depth = tree_depth(tiers.ranks());
  const double children = std::min(2, tiers.ranks() - 1);
  const double messages = children + (depth > 1 ? 1 : 0);
  return load_on_widest(tiers,
                        {.hops = depth,
                         .relays = depth,
                         .wire = children,
                         .shared = shared_along_a_tree(tiers, true),
                         .coded = messages,
                         .messages = messages,
                         .average = average_of_trees(tiers, 1, messages)},
                        {.memory = 2 + children,
                         .sent = messages - children,
                         .received = children,
                         .steps = 1,
                         .path = depth * (2 + children) + 2,
                         .peers = messages});
}

}  // namespace seto
