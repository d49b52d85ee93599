#pragma once

#include <cstdint>

#include "tests/software_gpu/rounding.h"

namespace seto::software_gpu {

// A binary format of at most 32 bits.
struct FloatFormat {
  std::uint32_t exponent_bits;
  std::uint32_t mantissa_bits;
  bool has_infinity = true;  // e4m3 has none: its largest exponent holds numbers, and one NaN

  [[nodiscard]] constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  [[nodiscard]] constexpr std::uint32_t bits() const { return 1 + exponent_bits + mantissa_bits; }
};

inline constexpr FloatFormat kHalf{5, 10};
inline constexpr FloatFormat kBfloat{8, 7};
inline constexpr FloatFormat kSingle{8, 23};
inline constexpr FloatFormat kE4m3{4, 3, false};
inline constexpr FloatFormat kE5m2{5, 2};

[[nodiscard]] double decoded(std::uint32_t bits, const FloatFormat& format);

// One rounding. A NaN becomes the format's canonical one (all ones but the sign). What is too large becomes infinity or the
// largest number, as the rounding demands; with `saturates` always the largest number.
[[nodiscard]] std::uint32_t encoded(double value, const FloatFormat& format, Rounding rounding, bool saturates);

// a * b + c as a double that rounds to any format of at most 24 bits of precision as the exact result does: it is rounded to odd.
// The operands are numbers of such a format.
[[nodiscard]] double fused_for_rounding(double a, double b, double c);

}  // namespace seto::software_gpu
