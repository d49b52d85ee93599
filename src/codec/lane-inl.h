// Bits of the floats that kernels compute in, and the two ends of their range. Included once for each instruction set.
#if defined(SETO_CODEC_LANE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SETO_CODEC_LANE_INL_H
#undef SETO_CODEC_LANE_INL_H
#else
#define SETO_CODEC_LANE_INL_H
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hwy/highway.h"
#include "src/codec/format.h"
#include "src/device/element-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seto {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using WordOf = hwy::MakeUnsigned<T>;

template <class D>
using Words = hn::Vec<hn::RebindToUnsigned<D>>;

// Bit layout of T, which is float or double.
template <class T>
struct Lane {
  using Word = WordOf<T>;
  static constexpr int kFraction = sizeof(T) == 4 ? 23 : 52;
  static constexpr int kBias = sizeof(T) == 4 ? 127 : 1023;
  static constexpr int kWidth = static_cast<int>(8 * sizeof(T));
  static constexpr Word kSign = Word{1} << (kWidth - 1);
  static constexpr Word kMagnitude = kSign - 1;
  static constexpr Word kOne = Word{kBias} << kFraction;
  static constexpr Word kInfinity = Word{2 * kBias + 1} << kFraction;
  static constexpr Word kNan = kInfinity | (Word{1} << (kFraction - 1));
  // Numbers below the smallest normal number are multiplied by 2^kLift before they are used in computations.
  static constexpr int kLift = kBias - 1;

  static constexpr Word power_word(int exponent) { return static_cast<Word>(exponent + kBias) << kFraction; }
  static T power(int exponent) { return from_word(power_word(exponent)); }  // 2^exponent, for normal numbers only
  static T from_word(Word word) { return std::bit_cast<T>(word); }
  static Word word_of(T value) { return std::bit_cast<Word>(value); }
};

// A block whose largest magnitude is below this is lifted first: only in such a block do denormal numbers affect the codes.
template <class T>
inline constexpr WordOf<T> kSmallestUsual = Lane<T>::power_word(sizeof(T) == 4 ? -40 : -900);

// The scale of a block of finite numbers, factor x 2^-exponent, and the header that states it.
struct Scaling {
  double factor;  // in (0.5, 1]
  BlockHeader header;
};

template <class D>
HWY_INLINE Words<D> words_of(D, hn::Vec<D> v) {
  return hn::BitCast(hn::RebindToUnsigned<D>(), v);
}

// Loads codes, which may lie at any address.
template <class D>
HWY_INLINE hn::Vec<D> load_codes(D d, const std::uint8_t* p) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    hn::TFromD<D> code;
    std::memcpy(&code, p, sizeof code);
    return hn::Set(d, code);
  } else {
    return hn::BitCast(d, hn::LoadU(hn::Repartition<std::uint8_t, D>(), p));
  }
}

template <class D>
HWY_INLINE void store_codes(D, hn::Vec<D> codes, std::uint8_t* p) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    const auto code = hn::GetLane(codes);
    std::memcpy(p, &code, sizeof code);
  } else {
    const hn::Repartition<std::uint8_t, D> db;
    hn::StoreU(hn::BitCast(db, codes), db, p);
  }
}

// Returns the larger of two magnitudes. It compares integers; signed ones, because not every instruction set compares unsigned
// ones.
template <class D>
HWY_INLINE Words<D> larger_of(D, Words<D> a, Words<D> b) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(hn::RebindToUnsigned<D>(), hn::Max(hn::BitCast(di, a), hn::BitCast(di, b)));
}

// True for lanes that are an infinity or a NaN.
template <class D>
HWY_INLINE hn::Mask<hn::RebindToUnsigned<D>> not_finite(D, Words<D> words) {
  const auto infinity = hn::Set(hn::RebindToUnsigned<D>(), Lane<hn::TFromD<D>>::kInfinity);
  return hn::Eq(hn::And(words, infinity), infinity);
}

// Returns magnitude x 2^kLift, exact, for magnitudes below 2. A denormal becomes the fraction of a number in [1, 2), so the
// result does not depend on whether the calling thread flushes denormals to zero.
template <class D>
HWY_INLINE hn::Vec<D> lift(D d, Words<D> magnitude) {
  using L = Lane<hn::TFromD<D>>;
  const hn::RebindToUnsigned<D> du;
  const auto one = hn::Set(du, L::kOne);
  const auto denormal = hn::Sub(hn::BitCast(d, hn::Or(magnitude, one)), hn::BitCast(d, one));
  const auto normal = hn::Mul(hn::BitCast(d, magnitude), hn::Set(d, L::power(L::kLift)));
  const auto is_denormal = hn::Eq(hn::And(magnitude, hn::Set(du, L::kInfinity)), hn::Zero(du));
  return hn::IfThenElse(hn::RebindMask(d, is_denormal), denormal, normal);
}

// The inverse, rounded to nearest even where the result is denormal.
template <class D>
HWY_INLINE hn::Vec<D> lower(D d, hn::Vec<D> lifted) {
  using L = Lane<hn::TFromD<D>>;
  const hn::RebindToUnsigned<D> du;
  const auto one = hn::BitCast(d, hn::Set(du, L::kOne));
  const auto denormal = hn::Sub(words_of(d, hn::Add(lifted, one)), hn::Set(du, L::kOne));
  const auto normal = hn::Mul(lifted, hn::Set(d, L::power(-L::kLift)));
  return hn::IfThenElse(hn::Lt(lifted, one), hn::BitCast(d, denormal), normal);
}

// Returns v as an integer, in two's complement. Floats: |v| < 2^31, rounded toward zero; doubles: |v| < 2^51, rounded to nearest.
template <class D>
HWY_INLINE Words<D> to_integer(D d, hn::Vec<D> v) {
  using L = Lane<hn::TFromD<D>>;
  const hn::RebindToUnsigned<D> du;
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return hn::BitCast(du, hn::ConvertTo(hn::RebindToSigned<D>(), v));
  } else {
    constexpr auto kAnchor = L::power_word(L::kFraction) | (typename L::Word{1} << (L::kFraction - 1));
    const auto anchor = hn::Set(du, kAnchor);
    return hn::Sub(words_of(d, hn::Add(v, hn::BitCast(d, anchor))), anchor);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace seto
HWY_AFTER_NAMESPACE();

#endif
