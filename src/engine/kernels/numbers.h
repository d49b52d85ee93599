#pragma once

#include <cstdint>
#include <type_traits>

#include "src/base/types.h"
#include "src/engine/kernels/portable.h"

// The data types as a fold sees them: how a number is widened to the type in which it is accumulated, and rounded back. The bits
// are those of src/device: a NaN that was computed becomes the one NaN of its type.
namespace seto::kernels {

template <class To, class From>
SETO_KERNEL constexpr To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

// The bits of float and double.
template <class T>
struct FloatBits {
  using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  static constexpr int kFraction = sizeof(T) == 4 ? 23 : 52;
  static constexpr int kBias = sizeof(T) == 4 ? 127 : 1023;
  static constexpr int kWidth = static_cast<int>(8 * sizeof(T));
  static constexpr Word kSign = Word{1} << (kWidth - 1);
  static constexpr Word kMagnitude = kSign - 1;
  static constexpr Word kOne = Word{kBias} << kFraction;
  static constexpr Word kInfinity = Word{2 * kBias + 1} << kFraction;
  static constexpr Word kNan = kInfinity | (Word{1} << (kFraction - 1));

  SETO_KERNEL static constexpr Word power_word(int exponent) { return static_cast<Word>(exponent + kBias) << kFraction; }
  // 2^exponent, for normal numbers only.
  SETO_KERNEL static constexpr T power(int exponent) { return bits_as<T>(power_word(exponent)); }
};

// The payload and sign of a NaN depend on the order of operands and on the processor.
template <class T>
SETO_KERNEL T one_nan(T value) {
  return value != value ? bits_as<T>(FloatBits<T>::kNan) : value;
}

template <class T>
struct Whole {
  using Storage = T;
  using Accumulator = T;
  SETO_KERNEL static T widen(T value) { return value; }
  SETO_KERNEL static T narrow(T value) { return value; }
  SETO_KERNEL static T round(T value) { return value; }
};

template <class T>
struct Real {
  using Storage = T;
  using Accumulator = T;
  SETO_KERNEL static T widen(T value) { return value; }
  SETO_KERNEL static T narrow(T value) { return one_nan(value); }
  SETO_KERNEL static T round(T value) { return value; }
};

#if defined(__CUDA_ARCH__)
SETO_KERNEL float float_of_half(std::uint32_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<std::uint16_t>(bits)));
  return value;
}
#endif

// A float format of sign, exponent and fraction with subnormals, by integer arithmetic and by float operations on normal numbers.
template <int kExponentBits, int kFractionBits, bool kHasInfinity>
struct SmallFormat {
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kShift = 23 - kFractionBits;
  static constexpr std::uint32_t kMagnitude = (1U << (kExponentBits + kFractionBits)) - 1;
  static constexpr std::uint32_t kSign = kMagnitude + 1;
  static constexpr std::uint32_t kInfinity = ((1U << kExponentBits) - 1) << kFractionBits;  // if the format has one
  static constexpr std::uint32_t kNan = kHasInfinity ? kInfinity | (1U << (kFractionBits - 1)) : kMagnitude;
  static constexpr std::uint32_t kOverflow = kHasInfinity ? kInfinity : kMagnitude - 1;  // the code of a value that is too large
  static constexpr std::uint32_t kSmallestNormal = static_cast<std::uint32_t>(128 - kBias) << 23;
  static constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - kBias) << 23;

  SETO_KERNEL static float widen(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
    return widen_as_half(bits);
#else
    return widen_portable(bits);
#endif
  }

#if defined(__CUDA_ARCH__)
  // A code in the upper bits of a half is a number with another bias. NaN may have another sign, which no fold keeps.
  SETO_KERNEL static float widen_as_half(std::uint32_t bits) {
    constexpr int kHalfBias = 15;
    constexpr int kUp = 10 - kFractionBits;
    const std::uint32_t half = (bits & kMagnitude) << kUp | (bits & kSign) << (15 - kExponentBits - kFractionBits);
    if constexpr (kHasInfinity) {
      static_assert(kBias == kHalfBias);
      return float_of_half(half);
    } else {
      const float value = float_of_half(half) * bits_as<float>(static_cast<std::uint32_t>(127 + kHalfBias - kBias) << 23);
      return (bits & kMagnitude) == kNan ? bits_as<float>(0x7FC00000U) : value;
    }
  }
#endif

  SETO_KERNEL static float widen_portable(std::uint32_t bits) {
    const std::uint32_t magnitude = bits & kMagnitude;
    const std::uint32_t sign = (bits & kSign) << (31 - kExponentBits - kFractionBits);
    const std::uint32_t placed = magnitude << kShift;
    std::uint32_t value = placed + kRebias;
    // A subnormal gets the exponent of the smallest normal number and an implicit leading one, which the subtraction removes.
    const float subnormal = bits_as<float>(placed + kSmallestNormal) - bits_as<float>(kSmallestNormal);
    if (magnitude < (1U << kFractionBits)) value = bits_as<std::uint32_t>(subnormal);
    if constexpr (kHasInfinity) {
      if (magnitude >= kInfinity) value = placed | 0x7F800000U;
    } else {
      if (magnitude == kNan) value = 0x7FC00000U;
    }
    return bits_as<float>(value | sign);
  }

  // Rounds to nearest even.
  SETO_KERNEL static std::uint32_t narrow(float value) {
    const auto bits = bits_as<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    const std::uint32_t sign = (bits >> (31 - kExponentBits - kFractionBits)) & kSign;
    const std::uint32_t odd = (magnitude >> kShift) & 1;
    const std::uint32_t normal = (magnitude + ((1U << (kShift - 1)) - 1 - kRebias) + odd) >> kShift;
    // Adding a number whose last place is the smallest subnormal makes the adder round.
    constexpr std::uint32_t kRounder = static_cast<std::uint32_t>(127 + 24 - kBias - kFractionBits) << 23;
    const float summed = bits_as<float>(magnitude) + bits_as<float>(kRounder);
    const std::uint32_t subnormal = bits_as<std::uint32_t>(summed) - kRounder;
    std::uint32_t result = normal < kOverflow ? normal : kOverflow;
    if (magnitude < kSmallestNormal) result = subnormal;
    result |= sign;
    return magnitude > 0x7F800000U ? kNan : result;
  }
};

// The upper half of a float. On GPUs two halves are made at a time, the upper one of zero, because the instruction for one
// belongs to a slower unit (F2F instead of F2FP).
struct BrainHalf {
  SETO_KERNEL static float widen(std::uint32_t bits) { return bits_as<float>(bits << 16); }

  SETO_KERNEL static std::uint32_t narrow(float value) {
#if defined(__CUDA_ARCH__)
    std::uint32_t codes;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(codes) : "f"(0.0F), "f"(value));
    return value != value ? 0x7FC0U : codes;
#else
    const auto bits = bits_as<std::uint32_t>(one_nan(value));
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
#endif
  }
};

struct Half {
  using Portable = SmallFormat<5, 10, true>;

  SETO_KERNEL static float widen(std::uint32_t bits) { return Portable::widen(bits); }

  // Not for NaN.
  SETO_KERNEL static std::uint32_t nearest(float value) {
#if defined(__CUDA_ARCH__)
    std::uint32_t codes;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(codes) : "f"(0.0F), "f"(value));
    return codes;
#else
    return Portable::narrow(value);
#endif
  }

  SETO_KERNEL static std::uint32_t narrow(float value) { return value != value ? Portable::kNan : nearest(value); }
};

// Types that are widened to float, folded there and rounded once.
template <class Format, class S>
struct Narrow {
  using Storage = S;
  using Accumulator = float;
  SETO_KERNEL static float widen(S code) { return Format::widen(code); }
  SETO_KERNEL static S narrow(float value) { return static_cast<S>(Format::narrow(value)); }
  SETO_KERNEL static float round(float value) { return Format::widen(Format::narrow(value)); }
};

using Float16 = Narrow<Half, std::uint16_t>;
using Bfloat16 = Narrow<BrainHalf, std::uint16_t>;
using Float8e4m3 = Narrow<SmallFormat<4, 3, false>, std::uint8_t>;
using Float8e5m2 = Narrow<SmallFormat<5, 2, true>, std::uint8_t>;

template <DataType kType>
struct NumberOf;
template <>
struct NumberOf<DataType::int8> : std::type_identity<Whole<std::int8_t>> {};
template <>
struct NumberOf<DataType::uint8> : std::type_identity<Whole<std::uint8_t>> {};
template <>
struct NumberOf<DataType::int32> : std::type_identity<Whole<std::int32_t>> {};
template <>
struct NumberOf<DataType::uint32> : std::type_identity<Whole<std::uint32_t>> {};
template <>
struct NumberOf<DataType::int64> : std::type_identity<Whole<std::int64_t>> {};
template <>
struct NumberOf<DataType::uint64> : std::type_identity<Whole<std::uint64_t>> {};
template <>
struct NumberOf<DataType::float16> : std::type_identity<Float16> {};
template <>
struct NumberOf<DataType::float32> : std::type_identity<Real<float>> {};
template <>
struct NumberOf<DataType::float64> : std::type_identity<Real<double>> {};
template <>
struct NumberOf<DataType::bfloat16> : std::type_identity<Bfloat16> {};
template <>
struct NumberOf<DataType::float8e4m3> : std::type_identity<Float8e4m3> {};
template <>
struct NumberOf<DataType::float8e5m2> : std::type_identity<Float8e5m2> {};

template <DataType kType>
using Number = typename NumberOf<kType>::type;

}  // namespace seto::kernels
