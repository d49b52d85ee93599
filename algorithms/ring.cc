#include "algorithms/ring.h"

#include "algorithms/parts.h"

namespace seto {

void ring_reduce_scatter(Builder& builder, const Group& group, const Parts& parts) {
  for (int hop = 1; hop < group.size(); ++hop) {
    for (const int p : group.touching({hop, hop + 1}))
      for (const Range range : part(parts, p)) builder.reduce(group[p + hop + 1], {group[p + hop], group[p + hop + 1]}, range);
    builder.next_round();
  }
}

void ring_all_gather(Builder& builder, const Group& group, const Parts& parts) {
  for (int hop = 0; hop + 1 < group.size(); ++hop) {
    for (const int p : group.touching({hop, hop + 1}))
      for (const Range range : part(parts, p)) builder.copy(group[p + hop], group[p + hop + 1], range);
    builder.next_round();
  }
}

void build_ring_all_reduce(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  const Parts parts = even_parts(builder.everything(), all.size());
  ring_reduce_scatter(builder, all, parts);
  for (const int own : all.own())
    for (const Range range : part(parts, own)) {
      builder.finish(all[own], range);
      builder.round(all[own], range);
    }
  ring_all_gather(builder, all, parts);
}

void build_ring_reduce_scatter(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  ring_reduce_scatter(builder, all, owned_parts(builder, all));
  for (const int own : all.own()) builder.finish(all[own], builder.part_of(all[own]));
}

void build_ring_all_gather(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  ring_all_gather(builder, all, owned_parts(builder, all));
}

void build_ring_broadcast(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  const int root = builder.shape().root;
  for (int hop = 0; hop + 1 < all.size(); ++hop) {
    builder.copy(all[root + hop], all[root + hop + 1], builder.everything());
    builder.next_round();
  }
}

void build_ring_reduce(Builder& builder, const Tiers&) {
  const Group all = Group::all(builder.shape(), builder.rank());
  const int root = builder.shape().root;
  for (int hop = all.size() - 1; hop > 0; --hop) {
    builder.reduce(all[root + hop - 1], {all[root + hop - 1], all[root + hop]}, builder.everything());
    builder.next_round();
  }
  builder.finish(all[root], builder.everything());
}

}  // namespace seto
