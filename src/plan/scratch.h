#pragma once

#include "src/plan/plan.h"

namespace seto {

// Renumbers the scratch chunks that the program still uses, densely and in their order, so that ranges stay ranges.
void compact_scratch(Program& program);

}  // namespace seto
