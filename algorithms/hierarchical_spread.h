#pragma once

#include "algorithms/algorithm.h"

namespace seto {

// Broadcast and reduce of large buffers over two or three tiers. The root scatters the buffer over the ranks of its member of the
// outermost tier, so that each of them carries a share between the members. Of more than two members the others own shares too:
// a share leaves the root's member once, and its owner passes it on to the further ones. Inside, all is as in `hierarchical`. A
// reduce does the same in reverse order.
void build_spread_broadcast(Builder& builder, const Tiers& tiers);
void build_spread_reduce(Builder& builder, const Tiers& tiers);

// The number of chunks, and how often a value is encoded on its way between members.
std::uint32_t chunks_of_spread(const Shape& shape, const Tiers& tiers);
std::uint32_t encodings_of_spread_reduce(const Shape& shape, const Tiers& tiers);

PlanLoad spread_broadcast_load(const Tiers& tiers);
PlanLoad spread_reduce_load(const Tiers& tiers);

}  // namespace seto
