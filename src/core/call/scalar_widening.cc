#include "src/core/call/scalar_widening.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace seto {
namespace {

struct Format {
  int exponent_bits;
  int mantissa_bits;
  bool infinities;  // false: only the largest code is NaN
};

float decoded(std::uint32_t bits, const Format& format) {
  const std::uint32_t mantissa_mask = (1U << format.mantissa_bits) - 1;
  const std::uint32_t exponent_mask = (1U << format.exponent_bits) - 1;
  const std::uint32_t mantissa = bits & mantissa_mask;
  const std::uint32_t exponent = bits >> format.mantissa_bits & exponent_mask;
  const bool negative = (bits >> (format.mantissa_bits + format.exponent_bits) & 1) != 0;
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  float magnitude;
  if (exponent == exponent_mask && (format.infinities || mantissa == mantissa_mask)) {
    magnitude =
        format.infinities && mantissa == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  } else {
    const std::uint32_t whole = exponent == 0 ? mantissa : mantissa | (1U << format.mantissa_bits);
    const int power = (exponent == 0 ? 1 : static_cast<int>(exponent)) - bias - format.mantissa_bits;
    magnitude = std::ldexp(static_cast<float>(whole), power);
  }
  return negative ? -magnitude : magnitude;
}

void write_float(float value, void* accumulator) { std::memcpy(accumulator, &value, sizeof value); }

}  // namespace

void widen(const void* value, DataType type, void* accumulator) {
  std::uint32_t bits = 0;
  if (size_of(type) <= sizeof bits) std::memcpy(&bits, value, size_of(type));
  switch (type) {
    case DataType::float16:
      return write_float(decoded(bits, {5, 10, true}), accumulator);
    case DataType::bfloat16:
      return write_float(decoded(bits, {8, 7, true}), accumulator);
    case DataType::float8e4m3:
      return write_float(decoded(bits, {4, 3, false}), accumulator);
    case DataType::float8e5m2:
      return write_float(decoded(bits, {5, 2, true}), accumulator);
    default:
      std::memcpy(accumulator, value, size_of(type));
  }
}

}  // namespace seto
