#pragma once

#include <cstdint>

#include "seto/seto.h"

namespace seto::bench {

// A binary floating-point format. Exponents are those of the leading bit of normal values.
struct FloatFormat {
  int precision;  // bits of the significand, the hidden one included
  int min_exponent;
  int max_exponent;
};

bool is_float(setoDataType_t type);
const FloatFormat& format_of(setoDataType_t type);

// Rounds to nearest even into the type's bits. The benchmarks do not use the library's conversion, so an error in it cannot hide.
// Values beyond the largest finite one become infinity (NaN in e4m3, which has no infinity).
std::uint64_t encode_float(setoDataType_t type, double value);
double decode_float(setoDataType_t type, std::uint64_t bits);

}  // namespace seto::bench
