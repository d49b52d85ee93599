#include "tests/software_gpu/float_formats.h"

#include <bit>
#include <cmath>
#include <limits>

namespace seto::software_gpu {
namespace {

// A non-negative scaled value (units of the last place) as an integer.
double rounded_units(double units, Rounding rounding, bool negative) {
  const double below = std::floor(units);
  const double rest = units - below;
  switch (rounding) {
    case Rounding::nearest:
      return rest > 0.5 || (rest == 0.5 && std::fmod(below, 2.0) != 0) ? below + 1 : below;
    case Rounding::zero:
      return below;
    case Rounding::down:
      return negative && rest > 0 ? below + 1 : below;
    case Rounding::up:
      return !negative && rest > 0 ? below + 1 : below;
  }
  return below;
}

}  // namespace

double decoded(std::uint32_t bits, const FloatFormat& format) {
  const std::uint32_t mantissa = bits & ((1U << format.mantissa_bits) - 1);
  const std::uint32_t top = (1U << format.exponent_bits) - 1;
  const std::uint32_t exponent = (bits >> format.mantissa_bits) & top;
  const bool negative = ((bits >> (format.bits() - 1)) & 1) != 0;
  const int scale = -format.bias() - static_cast<int>(format.mantissa_bits);
  double value = 0;
  if (exponent == top && format.has_infinity)
    value = mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  else if (exponent == top && mantissa == (1U << format.mantissa_bits) - 1)
    value = std::numeric_limits<double>::quiet_NaN();
  else if (exponent == 0)
    value = std::ldexp(mantissa, scale + 1);
  else
    value = std::ldexp(mantissa + (1U << format.mantissa_bits), scale + static_cast<int>(exponent));
  return negative ? -value : value;
}

std::uint32_t encoded(double value, const FloatFormat& format, Rounding rounding, bool saturates) {
  const std::uint32_t magnitude_mask = (1U << (format.bits() - 1)) - 1;
  if (std::isnan(value)) return magnitude_mask;
  const bool negative = std::signbit(value);
  const std::uint32_t sign = negative ? magnitude_mask + 1 : 0;
  const std::uint32_t infinity = ((1U << format.exponent_bits) - 1) << format.mantissa_bits;
  const std::uint32_t largest = format.has_infinity ? infinity - 1 : magnitude_mask - 1;
  const double magnitude = std::fabs(value);
  if (std::isinf(value)) return sign | (saturates ? largest : format.has_infinity ? infinity : magnitude_mask);
  if (magnitude == 0) return sign;
  // The exponent of the unit in the last place; subnormal numbers share the smallest.
  const int smallest = 1 - format.bias() - static_cast<int>(format.mantissa_bits);
  const int unit = std::max(std::ilogb(magnitude) - static_cast<int>(format.mantissa_bits), smallest);
  const auto units = static_cast<std::uint64_t>(rounded_units(std::ldexp(magnitude, -unit), rounding, negative));
  // A carry out of the mantissa moves into the exponent by itself.
  const std::uint64_t bits = (static_cast<std::uint64_t>(unit - smallest) << format.mantissa_bits) + units;
  if (bits <= largest) return sign | static_cast<std::uint32_t>(bits);
  const bool towards_zero =
      rounding == Rounding::zero || (rounding == Rounding::down && !negative) || (rounding == Rounding::up && negative);
  return sign | (saturates || towards_zero ? largest : format.has_infinity ? infinity : magnitude_mask);
}

double fused_for_rounding(double a, double b, double c) {
  const double product = a * b;  // exact: two factors of at most 24 bits
  const double sum = product + c;
  if (!std::isfinite(sum) || !std::isfinite(product)) return sum;
  // The exact rounding error of the sum. If there is one, the last bit must be odd: that keeps the result off every midpoint.
  const double part = sum - product;
  const double error = (product - (sum - part)) + (c - part);
  const auto bits = std::bit_cast<std::uint64_t>(sum);
  if (error == 0 || (bits & 1) != 0) return sum;
  const bool grows = (error > 0) == (sum > 0);
  return std::bit_cast<double>(grows ? bits + 1 : bits - 1);
}

}  // namespace seto::software_gpu
