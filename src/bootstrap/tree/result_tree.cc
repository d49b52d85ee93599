#include "src/bootstrap/tree/result_tree.h"

namespace seto {

std::vector<Rank> tree_children(Rank rank, int size) {
  std::vector<Rank> children;
  // A rank that is out of range has no children; the server rejects it.
  if (!has_tree(size) || rank < 0 || rank >= size) return children;
  const Rank first = kTreeTops + rank * kTreeFan;
  for (Rank child = first; child < first + kTreeFan && child < size; ++child) children.push_back(child);
  return children;
}

}  // namespace seto
