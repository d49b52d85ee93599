#pragma once

#include <vector>

#include "src/plan/plan.h"

namespace seto {

// For a lowered program with a codec: for each step, which of its chunks this rank encodes there for the first time. Such a value
// holds this rank's own contribution and no other rank has it, so this rank may keep the residual. A value that is encoded again
// later (recursive doubling) is encoded alike by several ranks and has no residual.
std::vector<std::vector<bool>> first_encodings(const Program& program);

}  // namespace seto
