#pragma once

#include "src/base/types.h"
#include "src/plan/hazards.h"
#include "src/plan/plan.h"

namespace seto {

// Lowering never moves a rounding. These rules state which other changes it may make besides moving fewer bytes.
struct LoweringRules {
  // fold: a chain of reduces becomes one pass. That is right only where the accumulator type is the element type.
  enum class Chains : std::uint8_t { keep, fold } chains = Chains::keep;
};

LoweringRules rules_for(DataType type);

// One rank's plain program, fused for an executor that reads and writes channel slots in place:
//   - a received message is read in its slot, and stored only if a step needs it in memory;
//   - a value goes to the user's buffer and to every channel that sends it in the same pass;
//   - a store that a later one overwrites, unread, is dropped (a ring's partial sums vanish);
//   - each fused step is its own lane, and the lanes stand in the order of their stages, as the skewed order needs it.
// Channels keep their addresses, cuts and stages: what other ranks see does not change.
Program lower(const Program& plain, const Shape& shape, InPlace in_place, LoweringRules rules);

}  // namespace seto
