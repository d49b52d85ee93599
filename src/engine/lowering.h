#pragma once

#include "src/base/types.h"
#include "src/plan/hazards.h"
#include "src/plan/plan.h"

namespace seto {

// What an engine may do to a program beyond moving less: nothing that moves a rounding.
struct LoweringRules {
  // A chain of reduces becomes one pass. Right only where the accumulator type is the element type.
  enum class Chains : std::uint8_t { keep, fold } chains = Chains::keep;
};

LoweringRules rules_for(DataType type);

// One rank's plain program, fused for an engine that reads and writes channel slots in place:
//   - a received message is read where it lies, and not stored if nobody needs it stored;
//   - a value goes to the user's buffer and to every channel that sends it in the same pass;
//   - a store that a later one overwrites, unread, is dropped (a ring's partial sums vanish);
//   - each fused step is its own lane. Their order, by stage, is the static order: slice s of a step of stage t runs in round
//     s + t, and steps of one round in lane order.
// Channels keep their addresses, cuts and stages: what other ranks see does not change.
Program lower(const Program& plain, const Shape& shape, InPlace in_place, LoweringRules rules);

}  // namespace seto
