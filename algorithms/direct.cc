#include "algorithms/direct.h"

#include "algorithms/parts.h"

namespace seto {

void direct_reduce_scatter(Builder& builder, const Group& group, const Parts& parts) {
  for (const int member : group.from_own())
    for (const Range range : part(parts, member)) builder.reduce_all(group, member, range);
  if (group.size() > 1) builder.next_round();
}

void direct_all_gather(Builder& builder, const Group& group, const Parts& parts) {
  for (const int member : group.from_own())
    for (const Range range : part(parts, member)) builder.multicast(group, member, range);
  if (group.size() > 1) builder.next_round();
}

void build_one_shot_all_reduce(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  builder.exchange(all, builder.everything());
  for (const int own : all.own()) builder.finish(all[own], builder.everything());
}

void build_two_shot_all_reduce(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  const Parts parts = even_parts(builder.everything(), all.size());
  direct_reduce_scatter(builder, all, parts);
  for (const int own : all.own())
    for (const Range range : part(parts, own)) {
      builder.finish(all[own], range);
      builder.round(all[own], range);
    }
  direct_all_gather(builder, all, parts);
}

void build_direct_reduce_scatter(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  direct_reduce_scatter(builder, all, owned_parts(builder, all));
  for (const int own : all.own()) builder.finish(all[own], builder.part_of(all[own]));
}

void build_direct_all_gather(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  direct_all_gather(builder, all, owned_parts(builder, all));
}

void build_direct_broadcast(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  builder.multicast(all, builder.shape().root, builder.everything());
}

void build_direct_reduce(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  builder.reduce_all(all, builder.shape().root, builder.everything());
  builder.finish(builder.shape().root, builder.everything());
}

void build_direct_gather(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  const int root = builder.shape().root;
  for (const int member : all.spokes(root)) builder.copy(all[member], all[root], builder.part_of(all[member]));
}

void build_direct_scatter(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  const int root = builder.shape().root;
  for (const int member : all.spokes(root)) builder.copy(all[root], all[member], builder.part_of(all[member]));
}

void build_direct_all_to_all(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  for (int distance = 1; distance < all.size(); ++distance)
    for (const int from : all.touching({0, distance}))
      builder.copy(all[from], all[from + distance], builder.part_of(all[from], all[from + distance]));
}

}  // namespace seto
