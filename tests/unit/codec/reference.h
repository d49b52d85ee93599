#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/types.h"
#include "src/codec/codec.h"

namespace seto::reference {

// The encoded form written down a second time: one number after another, in double, with the mathematics of frexp and rint;
// shares nothing with the kernels. To nearest.

using Bytes = std::vector<std::uint8_t>;

Bytes encoded(Codec codec, DataType type, const void* numbers, std::size_t count);

// What each code stands for, rounded to the type.
std::vector<double> decoded(Codec codec, DataType type, const Bytes& bytes, std::size_t count);

double number_at(DataType type, const void* numbers, std::size_t i);
void set_number(DataType type, void* numbers, std::size_t i, double value);  // rounded to the type, overflow to infinity

}  // namespace seto::reference
