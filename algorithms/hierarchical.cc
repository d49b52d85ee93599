#include "algorithms/hierarchical.h"

#include <algorithm>

#include "algorithms/direct.h"

namespace seto {
namespace {

Group group_at(const Builder& builder, const Tiers& tiers, int tier) {
  return {tiers.group(builder.rank(), tier), static_cast<std::uint8_t>(tier + 1), builder.rank()};
}

// Which of the data belongs to a rank once everything is scattered.
using PartOf = Range (*)(const Builder& builder, const Tiers& tiers, Rank rank);

Range by_owner(const Builder& builder, const Tiers&, Rank rank) { return builder.part_of(rank); }

Range by_position(const Builder& builder, const Tiers& tiers, Rank rank) {
  return builder.everything().part(static_cast<int>(tiers.position(rank)), tiers.ranks());
}

// What each member of the group stands for at this tier: the parts of all ranks behind it in the tiers outside.
Parts parts_at(const Builder& builder, const Tiers& tiers, int tier, PartOf part_of) {
  Parts parts;
  for (int member = 0; member < tiers.size(tier); ++member) {
    std::vector<Range> ranges;
    for (const Rank rank : tiers.column(builder.rank(), tier, member)) ranges.push_back(part_of(builder, tiers, rank));
    std::sort(ranges.begin(), ranges.end(), [](Range a, Range b) { return a.first < b.first; });
    std::vector<Range> joined;
    for (const Range range : ranges) {
      if (!joined.empty() && joined.back().first + joined.back().count == range.first) {
        joined.back().count += range.count;
      } else {
        joined.push_back(range);
      }
    }
    parts.push_back(std::move(joined));
  }
  return parts;
}

void scatter_sums(Builder& builder, const Tiers& tiers, PartOf part_of) {
  for (int tier = 0; tier < tiers.count(); ++tier) {
    builder.at_tier(tier);
    direct_reduce_scatter(builder, group_at(builder, tiers, tier), parts_at(builder, tiers, tier, part_of));
  }
  builder.finish(builder.rank(), part_of(builder, tiers, builder.rank()));
}

void gather_back(Builder& builder, const Tiers& tiers, PartOf part_of) {
  for (int tier = tiers.count() - 1; tier >= 0; --tier) {
    builder.at_tier(tier);
    direct_all_gather(builder, group_at(builder, tiers, tier), parts_at(builder, tiers, tier, part_of));
  }
}

// The built rank takes part at a tier of a rooted collective if all its inner coordinates are the root's.
bool stands_for_root(const Builder& builder, const Tiers& tiers, int tier) {
  for (int inner = 0; inner < tier; ++inner)
    if (tiers.coordinate(builder.rank(), inner) != tiers.coordinate(builder.shape().root, inner)) return false;
  return true;
}

}  // namespace

void build_hierarchical_all_reduce(Builder& builder, const Tiers& tiers) {
  scatter_sums(builder, tiers, by_position);
  builder.round(builder.rank(), by_position(builder, tiers, builder.rank()));
  gather_back(builder, tiers, by_position);
}

void build_hierarchical_reduce_scatter(Builder& builder, const Tiers& tiers) { scatter_sums(builder, tiers, by_owner); }

void build_hierarchical_all_gather(Builder& builder, const Tiers& tiers) { gather_back(builder, tiers, by_owner); }

void build_hierarchical_broadcast(Builder& builder, const Tiers& tiers) {
  for (int tier = tiers.count() - 1; tier >= 0; --tier) {
    if (stands_for_root(builder, tiers, tier))
      builder.multicast(group_at(builder, tiers, tier), tiers.coordinate(builder.shape().root, tier), builder.everything());
    builder.next_round();
  }
}

void build_hierarchical_reduce(Builder& builder, const Tiers& tiers) {
  for (int tier = 0; tier < tiers.count(); ++tier) {
    builder.at_tier(tier);
    if (stands_for_root(builder, tiers, tier))
      builder.reduce_all(group_at(builder, tiers, tier), tiers.coordinate(builder.shape().root, tier), builder.everything());
    builder.next_round();
  }
  builder.finish(builder.shape().root, builder.everything());
}

}  // namespace seto
