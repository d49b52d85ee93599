#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/types.h"
#include "src/codec/codec.h"

namespace seto::reference {

// A second implementation of the encoded form: one number after another, in double, with frexp and rint. It shares no code with
// the kernels. It rounds to nearest.

using Bytes = std::vector<std::uint8_t>;

Bytes encoded(Codec codec, DataType type, const void* numbers, std::size_t count);

// The value of each code, rounded to the type.
std::vector<double> decoded(Codec codec, DataType type, const Bytes& bytes, std::size_t count);

double number_at(DataType type, const void* numbers, std::size_t i);
void set_number(DataType type, void* numbers, std::size_t i, double value);  // rounded to the type, overflow to infinity

}  // namespace seto::reference
