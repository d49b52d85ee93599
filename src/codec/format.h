#pragma once

#include <bit>
#include <cstdint>

namespace seto {

// Formats that store numbers in fewer bytes. They are stateless: the bits depend on the values of a block and on nothing else
// (with stochastic rounding also on the seed and the position in the tensor). The numbers are part of messages: never renumbered.
enum class Codec : std::uint8_t { fp16, bf16, e4m3, e5m2, int8, int4 };
inline constexpr int kCodecCount = static_cast<int>(Codec::int4) + 1;  // the last one

// The constants of the formats, for kernels of every instruction set and for the error bounds, so that these cannot disagree.

// A float format of sign, exponent and fraction, with subnormals.
template <int kExponentBits, int kFractionBits, bool kInfinite>
struct FloatFormat {
  static constexpr bool kHasInfinity = kInfinite;
  static constexpr int kFraction = kFractionBits;
  static constexpr int kBits = 1 + kExponentBits + kFractionBits;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kLowest = 1 - kBias;                      // exponent of the smallest normal number
  static constexpr int kTop = kHasInfinity ? kBias : kBias + 1;  // exponent of the largest number
  static constexpr std::uint32_t kSign = 1u << (kBits - 1);
  static constexpr std::uint32_t kInfinity = ((1u << kExponentBits) - 1) << kFractionBits;  // if the format has one
  static constexpr std::uint32_t kNan = kHasInfinity ? kInfinity | (1u << (kFractionBits - 1)) : kSign - 1;
  static constexpr std::uint32_t kLargest = kHasInfinity ? kInfinity - 1 : kSign - 2;
  static constexpr std::uint32_t kLargestFraction = kLargest & ((1u << kFractionBits) - 1);
};

using HalfFormat = FloatFormat<5, 10, true>;
using BrainFloatFormat = FloatFormat<8, 7, true>;
using E4m3Format = FloatFormat<4, 3, false>;
using E5m2Format = FloatFormat<5, 2, true>;

// Integers from -kMost to kMost, in two's complement.
template <int kWidth>
struct IntegerFormat {
  static constexpr int kBits = kWidth;
  static constexpr int kMost = (1 << (kWidth - 1)) - 1;
};

// The header of a block: each number is its code times (1 + fraction / 2^16) x 2^exponent. Little endian. Float formats have no
// fraction.
struct BlockHeader {
  std::int16_t exponent;
  std::uint16_t fraction;
};
static_assert(std::endian::native == std::endian::little);  // headers and codes are written in memory order

// This exponent marks a block of integers in which a value was not finite. All its numbers become NaN.
inline constexpr std::int16_t kNotFinite = INT16_MAX;

inline constexpr std::uint32_t kBlock = 256;
inline constexpr std::uint32_t kInt4Block = 64;

}  // namespace seto
