#pragma once

#include "algorithms/algorithm.h"

namespace seto {

// Cuts `range` evenly into one contiguous part for each member.
inline Parts even_parts(Range range, int members) {
  Parts parts;
  for (int i = 0; i < members; ++i) parts.push_back({range.part(i, members)});
  return parts;
}

// For collectives whose chunks have an owner: the own part of every member.
inline Parts owned_parts(const Builder& builder, const Group& group) {
  Parts parts;
  for (const Rank member : group.members()) parts.push_back({builder.part_of(member)});
  return parts;
}

inline const std::vector<Range>& part(const Parts& parts, int index) {
  const int n = static_cast<int>(parts.size());
  return parts[static_cast<std::size_t>((index % n + n) % n)];
}

}  // namespace seto
