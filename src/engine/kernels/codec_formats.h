#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "src/codec/format.h"
#include "src/engine/kernels/memory.h"
#include "src/engine/kernels/numbers.h"
#include "src/engine/kernels/portable.h"

// The codecs on one number and on the header of one block, with the bits of src/codec. T is the float in which a type computes.
// Denormals are kept: GPUs run these with no flush to zero.
namespace seto::kernels {

// A block whose largest magnitude is below this is lifted first: only in such a block do denormal numbers affect the codes.
template <class T>
inline constexpr typename FloatBits<T>::Word kSmallestUsual = FloatBits<T>::power_word(sizeof(T) == 4 ? -40 : -900);
template <class T>
inline constexpr int kLift = FloatBits<T>::kBias - 1;
// Block exponents between -kUsual and kUsual can neither overflow nor give denormals, whatever the codes are. Exponents beyond
// kFarthest give the same results as kFarthest.
template <class T>
inline constexpr int kUsual = sizeof(T) == 4 ? 100 : 960;
template <class T>
inline constexpr int kFarthest = sizeof(T) == 4 ? 230 : 2000;
template <class Number>
inline constexpr auto kLargest = FloatBits<typename Number::Accumulator>::kInfinity - 1;
template <>
inline constexpr std::uint32_t kLargest<Bfloat16> = 0x7F7F0000U;

template <class T>
SETO_KERNEL typename FloatBits<T>::Word magnitude_of(T value) {
  return bits_as<typename FloatBits<T>::Word>(value) & FloatBits<T>::kMagnitude;
}

template <class T>
SETO_KERNEL T with_sign_of(T magnitude, T value) {
  using Word = typename FloatBits<T>::Word;
  return bits_as<T>(static_cast<Word>(bits_as<Word>(magnitude) | (bits_as<Word>(value) & FloatBits<T>::kSign)));
}

// magnitude x 2^kLift, exact, for magnitudes below 2. A denormal becomes the fraction of a number in [1, 2).
template <class T>
SETO_KERNEL T lift(typename FloatBits<T>::Word magnitude) {
  using Bits = FloatBits<T>;
  if ((magnitude & Bits::kInfinity) == 0) return bits_as<T>(magnitude | Bits::kOne) - T{1};
  return bits_as<T>(magnitude) * Bits::power(kLift<T>);
}

// The inverse, rounded to nearest even where the result is denormal.
template <class T>
SETO_KERNEL T lower(T lifted) {
  using Bits = FloatBits<T>;
  if (lifted < T{1}) return bits_as<T>(bits_as<typename Bits::Word>(lifted + T{1}) - Bits::kOne);
  return lifted * Bits::power(-kLift<T>);
}

// The scale of a block, factor x 2^-exponent, and what its header states.
template <class T>
struct Scaling {
  T factor = 1;
  int exponent = 0;
  std::uint32_t fraction = 0;

  // Little endian.
  [[nodiscard]] SETO_KERNEL std::uint32_t header() const {
    return (static_cast<std::uint32_t>(exponent) & 0xFFFFU) | fraction << 16;
  }
};

// The code of a finite float that is not larger than the format's largest number. Adding a power of two whose last place is one
// step of the grid of the float's exponent makes the adder count steps (src/codec/float-inl.h).
template <class F, class T>
SETO_KERNEL std::uint32_t float_code(T value) {
  using Bits = FloatBits<T>;
  using Word = typename Bits::Word;
  constexpr int kRest = Bits::kFraction - F::kFraction;
  constexpr Word kLowest = Bits::power_word(F::kLowest);
  constexpr Word kFirst = (0 - (kLowest >> kRest)) & ((Word{1} << F::kBits) - 1);
  const auto words = bits_as<Word>(value);
  const Word exponent = words & Bits::kInfinity;
  const Word grid = exponent > kLowest ? exponent : kLowest;
  const T anchor = bits_as<T>(static_cast<Word>(grid + (Word{kRest} << Bits::kFraction) + kFirst));
  const auto steps = bits_as<Word>(bits_as<T>(static_cast<Word>(words & Bits::kMagnitude)) + anchor);
  const Word sign = (words >> (Bits::kWidth - F::kBits)) & F::kSign;
  return static_cast<std::uint32_t>(((grid >> kRest) + steps) | sign) & (2 * F::kSign - 1);
}

// The code of an infinity or a NaN.
template <class F, class T>
SETO_KERNEL std::uint32_t special_code(T value) {
  using Bits = FloatBits<T>;
  if (!F::kHasInfinity || magnitude_of(value) != Bits::kInfinity) return F::kNan;
  const auto sign = static_cast<std::uint32_t>(bits_as<typename Bits::Word>(value) >> (Bits::kWidth - F::kBits));
  return (sign & F::kSign) | F::kInfinity;
}

// fp16, e4m3 and e5m2. Code converts codes to floats.
template <class F, class Code>
struct ScaledFloat {
  using Format = F;
  static constexpr int kElements = static_cast<int>(kBlock);
  static constexpr int kHeader = sizeof(BlockHeader);
  static constexpr int kBits = F::kBits;
  static constexpr bool kHoldsSpecials = true;
  static constexpr int kWide = 0;

  template <class T>
  SETO_KERNEL static bool is_usual(typename FloatBits<T>::Word largest) {
    return largest >= kSmallestUsual<T> && largest < FloatBits<T>::kInfinity;
  }

  template <class T>
  SETO_KERNEL static Scaling<T> scaling(typename FloatBits<T>::Word largest, int lifted) {
    using Bits = FloatBits<T>;
    using Word = typename Bits::Word;
    constexpr Word kRoom = (Word{1} << Bits::kFraction) - 1 - (Word{F::kLargestFraction} << (Bits::kFraction - F::kFraction));
    return {1, static_cast<int>((largest + kRoom) >> Bits::kFraction) - Bits::kBias - lifted - F::kTop, 0};
  }

  template <class T>
  SETO_KERNEL static std::uint32_t code(T value) {
    if constexpr (kOnGpu && F::kBits == 16 && sizeof(T) == 4)
      return Half::nearest(value);
    else
      return float_code<F>(value);
  }

  template <class T>
  SETO_KERNEL static T wide(std::uint32_t code) {
    return static_cast<T>(Code::widen(code));
  }
};

// bf16 has the range of fp32, so it needs no scale and no header. A value that would round to infinity becomes the largest finite
// number.
struct UnscaledBrain {
  using Format = BrainFloatFormat;
  static constexpr int kElements = static_cast<int>(kBlock);
  static constexpr int kHeader = 0;
  static constexpr int kBits = Format::kBits;
  static constexpr bool kHoldsSpecials = true;
  static constexpr int kWide = 0;

  template <class T>
  SETO_KERNEL static typename FloatBits<T>::Word most() {
    return bits_as<typename FloatBits<T>::Word>(static_cast<T>(bits_as<float>(kLargest<Bfloat16>)));
  }

  template <class T>
  SETO_KERNEL static bool is_usual(typename FloatBits<T>::Word largest) {
    return largest <= most<T>();
  }

  template <class T>
  SETO_KERNEL static Scaling<T> scaling(typename FloatBits<T>::Word, int) {
    return {};
  }

  template <class T>
  SETO_KERNEL static std::uint32_t code(T value) {
    if constexpr (sizeof(T) == 4) {
      const auto words = bits_as<std::uint32_t>(value);
      return (words + 0x7FFFU + ((words >> 16) & 1)) >> 16;
    } else {
      return float_code<Format>(value);
    }
  }

  template <class T>
  SETO_KERNEL static T wide(std::uint32_t code) {
    return static_cast<T>(BrainHalf::widen(code));
  }
};

// int8 and int4: a number is a multiple of a scale, the largest magnitude divided by kMost and rounded up to 17 bits. Codes of
// int4 are read in the upper half of a byte, so they are 2^4 times as large.
template <int kWidth, int kCount>
struct ScaledInteger {
  using Format = IntegerFormat<kWidth>;
  static constexpr int kElements = kCount;
  static constexpr int kHeader = sizeof(BlockHeader);
  static constexpr int kBits = kWidth;
  static constexpr bool kHoldsSpecials = false;
  static constexpr int kWide = kWidth - 8;

  template <class T>
  SETO_KERNEL static bool is_usual(typename FloatBits<T>::Word largest) {
    return largest >= kSmallestUsual<T> && largest < FloatBits<T>::kInfinity;
  }

  template <class T>
  SETO_KERNEL static Scaling<T> scaling(typename FloatBits<T>::Word largest, int lifted) {
    using Bits = FloatBits<T>;
    using Doubles = FloatBits<double>;
    const int exponent = static_cast<int>(largest >> Bits::kFraction) - Bits::kBias - lifted;
    const auto significand =
        static_cast<double>(bits_as<T>(static_cast<typename Bits::Word>((largest & ~Bits::kInfinity) | Bits::kOne)));
    constexpr int kCut = Doubles::kFraction - 16;
    const std::uint64_t quotient = bits_as<std::uint64_t>(significand / Format::kMost) + ((std::uint64_t{1} << kCut) - 1);
    const auto fraction = static_cast<std::uint32_t>(quotient >> kCut) & 0xFFFFU;
    const int shift = static_cast<int>(quotient >> Doubles::kFraction) - Doubles::kBias;
    return {static_cast<T>(1 / (1 + static_cast<double>(fraction) * 0x1p-16)), exponent + shift, fraction};
  }

  // The adder rounds; the low bits of the sum are the integer.
  template <class T>
  SETO_KERNEL static std::uint32_t code(T value) {
    using Bits = FloatBits<T>;
    using Word = typename Bits::Word;
    constexpr Word kAnchor = Bits::power_word(Bits::kFraction) | (Word{1} << (Bits::kFraction - 1));
    return static_cast<std::uint32_t>(bits_as<Word>(value + bits_as<T>(kAnchor))) & ((1U << kWidth) - 1);
  }

  template <class T>
  SETO_KERNEL static T wide(std::uint32_t code) {
    return static_cast<T>(static_cast<std::int8_t>(static_cast<std::uint8_t>(code << (8 - kWidth))));
  }
};

using CodedHalf = ScaledFloat<HalfFormat, Half>;
using CodedE4m3 = ScaledFloat<E4m3Format, SmallFormat<4, 3, false>>;
using CodedE5m2 = ScaledFloat<E5m2Format, SmallFormat<5, 2, true>>;
using CodedInt8 = ScaledInteger<8, static_cast<int>(kBlock)>;
using CodedInt4 = ScaledInteger<4, static_cast<int>(kInt4Block)>;

// How the numbers of one block become codes. All lanes of a warp have the same.
template <class F, class T>
class BlockEncoder {
 public:
  using Bits = FloatBits<T>;
  using Word = typename Bits::Word;

  // `largest`: magnitude of the block; `finite`: the largest magnitude that is finite.
  SETO_KERNEL BlockEncoder(Word largest, Word finite) {
    if (F::template is_usual<T>(largest)) {
      use(F::template scaling<T>(largest, 0), 0);
      return;
    }
    way_ = Way::careful;
    if (largest >= Bits::kInfinity && !F::kHoldsSpecials) {
      way_ = Way::lost;
      header_ = static_cast<std::uint16_t>(kNotFinite);
      return;
    }
    if constexpr (F::kHeader != 0) {
      if (finite < kSmallestUsual<T>) way_ = Way::lifted;
      if (finite == 0) return;
      if (way_ == Way::lifted)
        use(F::template scaling<T>(bits_as<Word>(lift<T>(finite)), kLift<T>), kLift<T>);
      else
        use(F::template scaling<T>(finite, 0), 0);
    }
  }

  [[nodiscard]] SETO_KERNEL std::uint32_t header() const { return header_; }

  // Ordinary blocks have a loop of their own, which is short.
  template <int kCount>
  SETO_KERNEL void encode(const T (&value)[kCount], std::uint32_t (&code)[kCount]) const {
    if (way_ == Way::usual) {
      SETO_UNROLL for (int i = 0; i < kCount; ++i) {
        code[i] = F::template code<T>(F::kHeader == 0 ? value[i] : value[i] * factor_);
      }
    } else {
      SETO_UNROLL for (int i = 0; i < kCount; ++i) code[i] = careful_code(value[i]);
    }
  }

 private:
  enum class Way : std::uint32_t { usual, careful, lifted, lost };

  [[nodiscard]] SETO_KERNEL std::uint32_t careful_code(T value) const {
    if (way_ == Way::lost) return 0;
    const Word magnitude = magnitude_of(value);
    if (magnitude >= Bits::kInfinity) {
      if constexpr (F::kHoldsSpecials) return special_code<typename F::Format>(value);
    }
    T scaled;
    if constexpr (F::kHeader == 0) {
      const Word most = F::template most<T>();
      scaled = bits_as<T>(magnitude < most ? magnitude : most);
    } else {
      scaled = (way_ == Way::lifted ? lift<T>(magnitude) : bits_as<T>(magnitude)) * factor_;
    }
    return F::template code<T>(with_sign_of(scaled, value));
  }

  SETO_KERNEL void use(const Scaling<T>& scaling, int lifted) {
    header_ = scaling.header();
    if constexpr (F::kHeader != 0) factor_ = scaling.factor * Bits::power(-scaling.exponent - lifted);
  }

  T factor_ = 1;
  std::uint32_t header_ = 0;
  Way way_ = Way::usual;
};

// How the codes of one block become numbers.
template <class F, class Number>
class BlockDecoder {
 public:
  using Storage = typename Number::Storage;
  using T = typename Number::Accumulator;
  using Bits = FloatBits<T>;

  SETO_KERNEL explicit BlockDecoder(std::uint32_t header) {
    if constexpr (F::kHeader != 0) {
      const int stated = static_cast<std::int16_t>(static_cast<std::uint16_t>(header));
      const T significand = F::kHoldsSpecials ? T{1} : T{1} + static_cast<T>(header >> 16) * static_cast<T>(0x1p-16);
      int exponent = stated + F::kWide;
      if (exponent < -kUsual<T> || exponent > kUsual<T>) {
        const int clamped = stated < -kFarthest<T> ? -kFarthest<T> : stated > kFarthest<T> ? kFarthest<T> : stated;
        exponent = clamped + F::kWide;
        way_ = !F::kHoldsSpecials && stated == kNotFinite ? Way::lost : exponent < 0 ? Way::small : Way::large;
        exponent += exponent < 0 ? kLift<T> : -kLift<T>;
      }
      scale_ = significand * Bits::power(exponent);
    }
  }

  // Gives each number to take(index, number).
  template <int kCount, class Take>
  SETO_KERNEL void decode(const std::uint32_t (&code)[kCount], const Take& take) const {
    if (F::kHeader == 0 || way_ == Way::usual) {
      SETO_UNROLL for (int i = 0; i < kCount; ++i) {
        const T wide = F::template wide<T>(code[i]);
        take(i, Number::narrow(F::kHeader == 0 ? wide : wide * scale_));
      }
    } else {
      SETO_UNROLL for (int i = 0; i < kCount; ++i) take(i, careful_number(F::template wide<T>(code[i])));
    }
  }

 private:
  enum class Way : std::uint32_t { usual, small, large, lost };

  [[nodiscard]] SETO_KERNEL Storage careful_number(T wide) const {
    if (way_ == Way::lost) return Number::narrow(bits_as<T>(Bits::kNan));
    if (F::kHoldsSpecials && magnitude_of(wide) >= Bits::kInfinity) return Number::narrow(wide);
    const T scaled = bits_as<T>(magnitude_of(wide)) * scale_;
    if (way_ == Way::small) return Number::narrow(with_sign_of(lower(scaled), wide));
    const T most = bits_as<T>(kLargest<Number>) * Bits::power(-kLift<T>);
    return Number::narrow(with_sign_of((scaled < most ? scaled : most) * Bits::power(kLift<T>), wide));
  }

  T scale_ = 1;
  Way way_ = Way::usual;
};

}  // namespace seto::kernels
