// Decodes a block of codes to numbers, or adds it to numbers. Included once for each instruction set.
#if defined(SETO_CODEC_DECODE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SETO_CODEC_DECODE_INL_H
#undef SETO_CODEC_DECODE_INL_H
#else
#define SETO_CODEC_DECODE_INL_H
#endif

#include <algorithm>
#include <cstring>

#include "src/codec/float-inl.h"
#include "src/codec/integer-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seto {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Block exponents between -kUsual and kUsual can neither overflow nor give denormals, whatever the codes are. Exponents beyond
// kFarthest give the same results as kFarthest, so exponents from malformed input are clamped there.
template <class T>
inline constexpr int kUsual = sizeof(T) == 4 ? 100 : 960;
template <class T>
inline constexpr int kFarthest = sizeof(T) == 4 ? 230 : 2000;

// The codes as lanes of N's float, before scaling. The conversion is exact.
template <class F, class N, class D>
HWY_INLINE hn::Vec<D> wide_of(D d, const std::uint8_t* payload, std::size_t i) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return F::wide(d, payload, i);
  } else {
    return hn::PromoteTo(d, F::wide(hn::Rebind<float, D>(), payload, i));
  }
}

template <class F, class N, bool kAdds, class D>
HWY_INLINE void put_number(D d, hn::Vec<D> v, const typename N::Storage* source, typename N::Storage* target, std::size_t i) {
  if constexpr (kAdds) v = hn::Add(N::load(d, source + i), v);
  N::store(d, kAdds || F::kHoldsSpecials ? one_nan(d, v) : v, target + i);
}

// Float formats are scaled by powers of two, so their fraction is zero and is not read.
template <class F, class T>
HWY_INLINE T significand_of(BlockHeader header) {
  if constexpr (F::kHoldsSpecials) return 1;
  return static_cast<T>(1) + static_cast<T>(header.fraction) * static_cast<T>(0x1p-16);
}

// bf16 has the denormals of fp32. A conversion to fp64 would lose them where the thread flushes denormals.
template <class D>
HWY_INLINE hn::Vec<D> wide_brain(D d, const std::uint8_t* payload, std::size_t i) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return UnscaledBrain::wide(d, payload, i);
  } else {
    using L = Lane<float>;
    const hn::Rebind<float, D> df;
    const hn::RebindToUnsigned<decltype(df)> du;
    const auto v = UnscaledBrain::wide(df, payload, i);
    const auto magnitude = hn::And(words_of(df, v), hn::Set(du, L::kMagnitude));
    const auto small = hn::RebindMask(df, hn::Eq(hn::And(magnitude, hn::Set(du, L::kInfinity)), hn::Zero(du)));
    const auto lifted = hn::IfThenElse(small, hn::CopySignToAbs(lift(df, magnitude), v), v);
    const auto factor = hn::IfThenElse(small, hn::Set(df, L::power(-L::kLift)), hn::Set(df, 1.0F));
    return hn::Mul(hn::PromoteTo(d, lifted), hn::PromoteTo(d, factor));
  }
}

// For blocks whose scale is so small or so large that denormals or overflow are possible. A value that would overflow becomes the
// largest finite number.
template <class F, class N, bool kAdds>
HWY_NOINLINE void decode_careful(BlockHeader header, const std::uint8_t* payload, const typename N::Storage* source,
                                 typename N::Storage* target) {
  using T = typename N::Float;
  using L = Lane<T>;
  const hn::ScalableTag<T> d;
  const bool is_nan = !F::kHoldsSpecials && header.exponent == kNotFinite;
  const int exponent = std::clamp(static_cast<int>(header.exponent), -kFarthest<T>, kFarthest<T>) + F::kWide;
  const bool is_small = exponent < 0;
  const auto scale = hn::Set(d, significand_of<F, T>(header) * L::power(is_small ? exponent + L::kLift : exponent - L::kLift));
  const auto most = hn::Set(d, N::kLargest * L::power(-L::kLift));
  for (std::size_t i = 0; i < F::kElements; i += hn::MaxLanes(d)) {
    const auto v = wide_of<F, N>(d, payload, i);
    const auto scaled = hn::Mul(hn::Abs(v), scale);
    const auto large = hn::Mul(hn::Min(scaled, most), hn::Set(d, L::power(L::kLift)));
    auto result = hn::CopySignToAbs(is_small ? lower(d, scaled) : large, v);
    result = hn::IfThenElse(hn::RebindMask(d, not_finite(d, words_of(d, v))), v, result);
    if (is_nan) result = hn::BitCast(d, hn::Set(hn::RebindToUnsigned<decltype(d)>(), L::kNan));
    put_number<F, N, kAdds>(d, result, source, target, i);
  }
}

template <class F, class N, bool kAdds>
HWY_INLINE void decode_block(const std::uint8_t* encoded, const typename N::Storage* source, typename N::Storage* target) {
  using T = typename N::Float;
  const hn::ScalableTag<T> d;
  if constexpr (F::kHeader == 0) {
    for (std::size_t i = 0; i < F::kElements; i += hn::MaxLanes(d))
      put_number<F, N, kAdds>(d, wide_brain(d, encoded, i), source, target, i);
  } else {
    BlockHeader header;
    std::memcpy(&header, encoded, sizeof header);
    const std::uint8_t* payload = encoded + F::kHeader;
    const int exponent = header.exponent + F::kWide;
    if (HWY_UNLIKELY(exponent < -kUsual<T> || exponent > kUsual<T>))
      return decode_careful<F, N, kAdds>(header, payload, source, target);
    const auto scale = hn::Set(d, significand_of<F, T>(header) * Lane<T>::power(exponent));
    for (std::size_t i = 0; i < F::kElements; i += hn::MaxLanes(d))
      put_number<F, N, kAdds>(d, hn::Mul(wide_of<F, N>(d, payload, i), scale), source, target, i);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace seto
HWY_AFTER_NAMESPACE();

#endif
