// Codes of the float formats. Included once for each instruction set.
#if defined(SETO_CODEC_FLOAT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SETO_CODEC_FLOAT_INL_H
#undef SETO_CODEC_FLOAT_INL_H
#else
#define SETO_CODEC_FLOAT_INL_H
#endif

#include "src/codec/format.h"
#include "src/codec/number-inl.h"
#include "src/codec/rounding-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seto {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The code of a finite float that is not larger than the format's largest number, in the low bits of a word; the bits above are
// cut when the code is stored. Every exponent has its own grid of values, and subnormals use the grid of the lowest exponent.
// Adding a power of two whose last place is one step of the grid makes the adder count steps. Codes continue from one grid to the
// next, so a carry needs no special case.
template <class F, class D, class Rounding>
HWY_INLINE Words<D> float_code(D d, hn::Vec<D> v, const Rounding& rounding, std::size_t i) {
  using L = Lane<hn::TFromD<D>>;
  using Word = typename L::Word;
  const hn::RebindToUnsigned<D> du;
  constexpr int kRest = L::kFraction - F::kFraction;
  constexpr Word kLowest = L::power_word(F::kLowest);
  const auto words = words_of(d, v);
  const auto magnitude = hn::BitCast(d, hn::And(words, hn::Set(du, L::kMagnitude)));
  const auto grid = larger_of(d, hn::And(words, hn::Set(du, L::kInfinity)), hn::Set(du, kLowest));
  const auto grids = hn::ShiftRight<kRest>(grid);
  auto steps = hn::Undefined(du);
  // Both count the steps that grids below the lowest one would have had. Adding the low bits of the negated number removes them.
  constexpr Word kFirst = (0 - (kLowest >> kRest)) & ((Word{1} << F::kBits) - 1);
  static_assert(kFirst % 2 == 0);  // an odd number would reverse the rounding of ties
  if constexpr (Rounding::kByChance) {
    constexpr int kFine = 29 - F::kFraction;  // bits of a step that stochastic rounding uses
    constexpr Word kUnits = Word{2 * L::kBias + F::kFraction + kFine} << L::kFraction;
    const auto units = hn::BitCast(d, hn::Sub(hn::Set(du, kUnits), grid));
    const auto fine = to_integer(d, hn::Mul(magnitude, units));
    const auto cut = hn::ShiftRight<kFine>(hn::Add(fine, hn::ShiftRight<32 - kFine>(rounding.random(d, i))));
    steps = hn::Add(cut, hn::Set(du, kFirst));
  } else {
    const auto anchor = hn::BitCast(d, hn::Add(grid, hn::Set(du, (Word{kRest} << L::kFraction) + kFirst)));
    steps = words_of(d, hn::Add(magnitude, anchor));
  }
  const auto sign = hn::ShiftRight<L::kWidth - F::kBits>(words);
  return hn::OrAnd(hn::Add(grids, steps), sign, hn::Set(du, Word{F::kSign}));
}

// True if the processor converts between fp16 and fp32.
inline constexpr bool kHasHalves = std::is_same_v<Float16, NativeHalf>;

// The code of an infinity or a NaN.
template <class F, class D>
HWY_INLINE Words<D> special_code(D, Words<D> words) {
  using L = Lane<hn::TFromD<D>>;
  const hn::RebindToUnsigned<D> du;
  const auto nan = hn::Set(du, typename L::Word{F::kNan});
  if constexpr (!F::kHasInfinity) return nan;
  const auto sign = hn::ShiftRight<L::kWidth - F::kBits>(hn::And(words, hn::Set(du, L::kSign)));
  const auto infinity = hn::Or(sign, hn::Set(du, typename L::Word{F::kInfinity}));
  const auto is_infinity = hn::Eq(hn::And(words, hn::Set(du, L::kMagnitude)), hn::Set(du, L::kInfinity));
  return hn::IfThenElse(is_infinity, infinity, nan);
}

// fp16, e4m3 and e5m2 (E as src/device has them): a block is scaled by the power of two that brings its largest finite magnitude
// to the format's highest exponent, without exceeding the format's largest number.
template <class F, class E>
struct ScaledFloat {
  using Format = F;
  static constexpr std::size_t kElements = kBlock;
  static constexpr std::size_t kHeader = sizeof(BlockHeader);
  static constexpr std::size_t kPayload = kElements * static_cast<std::size_t>(F::kBits) / 8;
  static constexpr bool kHoldsSpecials = true;
  static constexpr bool kByHalf = kHasHalves && F::kBits == 8;
  static constexpr int kWide = kByHalf ? HalfFormat::kBias - F::kBias : 0;
  using Code = typename E::Storage;

  template <class T>
  static bool is_usual(WordOf<T> largest) {
    return largest >= kSmallestUsual<T> && largest < Lane<T>::kInfinity;
  }

  template <class T>
  static Scaling scaling(WordOf<T> largest, int lifted) {
    using L = Lane<T>;
    constexpr int kRest = L::kFraction - F::kFraction;
    constexpr auto kRoom = (typename L::Word{1} << L::kFraction) - 1 - (typename L::Word{F::kLargestFraction} << kRest);
    const int exponent = static_cast<int>((largest + kRoom) >> L::kFraction) - L::kBias - lifted;
    return {1, {static_cast<std::int16_t>(exponent - F::kTop), 0}};
  }

  template <class D, class Rounding>
  static HWY_INLINE Words<D> code(D d, hn::Vec<D> v, const Rounding& rounding, std::size_t i) {
    return float_code<F>(d, v, rounding, i);
  }

  template <class D>
  static HWY_INLINE void store(D, Words<D> codes, std::uint8_t* payload, std::size_t i) {
    const hn::Rebind<Code, D> dc;
    store_codes(dc, hn::TruncateTo(dc, codes), payload + i * sizeof(Code));
  }

  template <class D, class Rounding>
  static HWY_INLINE void put(D d, hn::Vec<D> v, const Rounding& rounding, std::uint8_t* payload, std::size_t i) {
    if constexpr (std::is_same_v<E, NativeHalf> && sizeof(hn::TFromD<D>) == 4 && !Rounding::kByChance) {
      const hn::Rebind<Code, D> dc;
      const auto halves = hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), v);
      store_codes(dc, hn::BitCast(dc, halves), payload + i * sizeof(Code));
    } else {
      store(d, code(d, v, rounding, i), payload, i);
    }
  }

  // One float for each code, to be multiplied by 2^kWide. An 8-bit code that is placed in the upper bits of a half is a number in
  // the exponent range of halves, subnormals included, so the processor's conversion works for it too.
  template <class D>
  static HWY_INLINE hn::Vec<D> wide(D d, const std::uint8_t* payload, std::size_t i) {
    const hn::Rebind<Code, D> dc;
    const auto codes = load_codes(dc, payload + i * sizeof(Code));
    if constexpr (kByHalf) {
      const hn::Rebind<std::uint16_t, D> dh;
      constexpr int kShift = HalfFormat::kFraction - F::kFraction;
      const auto halves = hn::PromoteTo(dh, codes);
      if constexpr (F::kHasInfinity) {
        return NativeHalf::widen(d, hn::ShiftLeft<kShift>(halves));
      } else {
        const auto magnitude = hn::And(halves, hn::Set(dh, std::uint16_t{F::kSign - 1}));
        const auto sign = hn::ShiftLeft<8>(hn::And(halves, hn::Set(dh, std::uint16_t{F::kSign})));
        const auto is_nan = hn::Eq(magnitude, hn::Set(dh, std::uint16_t{F::kNan}));
        const auto number = hn::Or(hn::ShiftLeft<kShift>(magnitude), sign);
        return NativeHalf::widen(d, hn::IfThenElse(is_nan, hn::Set(dh, std::uint16_t{HalfFormat::kNan}), number));
      }
    } else {
      return E::widen(d, codes);
    }
  }
};

// bf16 has the range of fp32, so it needs no scale and no header. A value that would round to infinity becomes the largest finite
// number.
struct UnscaledBrain {
  using Format = BrainFloatFormat;
  static constexpr std::size_t kElements = kBlock;
  static constexpr std::size_t kHeader = 0;
  static constexpr std::size_t kPayload = kElements * 2;
  static constexpr bool kHoldsSpecials = true;

  template <class T>
  static bool is_usual(WordOf<T> largest) {
    return largest <= Lane<T>::word_of(static_cast<T>(Brain::kLargest));
  }

  template <class D, class Rounding>
  static HWY_INLINE Words<D> code(D d, hn::Vec<D> v, const Rounding& rounding, std::size_t i) {
    if constexpr (sizeof(hn::TFromD<D>) == 4) {
      const hn::RebindToUnsigned<D> du;
      const auto words = words_of(d, v);
      if constexpr (Rounding::kByChance) {
        return hn::ShiftRight<16>(hn::Add(words, hn::ShiftRight<16>(rounding.random(d, i))));
      } else {
        const auto odd = hn::And(hn::ShiftRight<16>(words), hn::Set(du, 1u));
        return hn::ShiftRight<16>(hn::Add(hn::Add(words, hn::Set(du, 0x7FFFu)), odd));
      }
    } else {
      return float_code<Format>(d, v, rounding, i);
    }
  }

  template <class D>
  static HWY_INLINE void store(D, Words<D> codes, std::uint8_t* payload, std::size_t i) {
    const hn::Rebind<std::uint16_t, D> dc;
    store_codes(dc, hn::TruncateTo(dc, codes), payload + 2 * i);
  }

  template <class D, class Rounding>
  static HWY_INLINE void put(D d, hn::Vec<D> v, const Rounding& rounding, std::uint8_t* payload, std::size_t i) {
    store(d, code(d, v, rounding, i), payload, i);
  }

  template <class D>
  static HWY_INLINE hn::Vec<D> wide(D d, const std::uint8_t* payload, std::size_t i) {
    return Bfloat16::widen(d, load_codes(hn::Rebind<std::uint16_t, D>(), payload + 2 * i));
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace seto
HWY_AFTER_NAMESPACE();

#endif
