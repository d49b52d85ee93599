#include "algorithms/halving_doubling.h"

#include <algorithm>

#include "algorithms/parts.h"

namespace seto {
namespace {

// Parts first … first + count - 1, round the end, as few ranges as they make.
std::vector<Range> joined(const Parts& parts, int first, int count) {
  std::vector<Range> ranges;
  for (int i = 0; i < count; ++i)
    for (const Range range : part(parts, first + i)) {
      if (!ranges.empty() && ranges.back().first + ranges.back().count == range.first) {
        ranges.back().count += range.count;
      } else {
        ranges.push_back(range);
      }
    }
  return ranges;
}

}  // namespace

void halving_reduce_scatter(Builder& builder, const Group& group, const Parts& parts) {
  const int n = group.size();
  int reach = 1;
  while (reach < n) reach *= 2;
  for (reach /= 2; reach >= 1; reach /= 2) {
    const int count = std::min(reach, n - reach);
    for (const int to : group.touching({0, -reach}))
      for (const Range range : joined(parts, to, count)) builder.reduce(group[to], {group[to - reach], group[to]}, range);
    builder.next_round();
  }
}

void doubling_all_gather(Builder& builder, const Group& group, const Parts& parts) {
  const int n = group.size();
  for (int reach = 1; reach < n; reach *= 2) {
    const int count = std::min(reach, n - reach);
    for (const int from : group.touching({0, -reach}))
      for (const Range range : joined(parts, from, count)) builder.copy(group[from], group[from - reach], range);
    builder.next_round();
  }
}

void build_halving_doubling_all_reduce(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  const Parts parts = even_parts(builder.everything(), all.size());
  halving_reduce_scatter(builder, all, parts);
  for (const int own : all.own())
    for (const Range range : part(parts, own)) builder.finish(all[own], range);
  doubling_all_gather(builder, all, parts);
}

void build_halving_reduce_scatter(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  halving_reduce_scatter(builder, all, owned_parts(builder, all));
  for (const int own : all.own()) builder.finish(all[own], builder.part_of(all[own]));
}

void build_doubling_all_gather(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  doubling_all_gather(builder, all, owned_parts(builder, all));
}

void build_recursive_doubling_all_reduce(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  const Range whole = builder.everything();
  const int n = all.size();
  int core = 1;
  while (core * 2 <= n) core *= 2;
  const int extra = n - core;  // member core + i stands behind member i
  for (const int i : all.touching({0, core}))
    if (i < extra) builder.reduce(all[i], {all[i], all[core + i]}, whole);
  if (extra > 0) builder.next_round();
  for (int distance = 1; distance < core; distance *= 2) {
    for (const int i : all.own())
      if (i < core) builder.exchange(all[i & ~distance], all[i | distance], whole);
    builder.next_round();
  }
  for (const int i : all.own()) {
    if (i < core) builder.finish(all[i], whole);
    if (i < core && extra > 0)
      builder.round(all[i], whole);  // all of them: those without one behind them must have the same bits
  }
  for (const int i : all.touching({0, core}))
    if (i < extra) builder.copy(all[i], all[core + i], whole);
}

}  // namespace seto
