#pragma once

#include <vector>

#include "src/plan/plan.h"

namespace seto {

// Of a lowered program with a codec: for each step, which of its chunks this rank encodes there for the first time. That value
// holds the rank's own contribution and is nobody else's, so what the codec leaves out of it may be this rank's own debt. What is
// encoded again later (recursive doubling) several ranks make alike, and must go on to.
std::vector<std::vector<bool>> first_encodings(const Program& program);

}  // namespace seto
