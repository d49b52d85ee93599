#pragma once

#include "src/base/types.h"

namespace seto {

// One value of the type, in its accumulator type: float for the 16- and 8-bit floats, else itself. Writes at most 8 bytes.
void widen(const void* value, DataType type, void* accumulator);

}  // namespace seto
