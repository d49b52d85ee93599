#pragma once

#include "src/base/types.h"

namespace seto {

// Converts one value to its accumulator type: float for the 16- and 8-bit floats, otherwise the same type. Writes at most 8
// bytes.
void widen(const void* value, DataType type, void* accumulator);

}  // namespace seto
