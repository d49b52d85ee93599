// Encodes a block of numbers to codes. Included once for each instruction set.
#if defined(SETO_CODEC_ENCODE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SETO_CODEC_ENCODE_INL_H
#undef SETO_CODEC_ENCODE_INL_H
#else
#define SETO_CODEC_ENCODE_INL_H
#endif

#include <cstring>

#include "src/codec/float-inl.h"
#include "src/codec/integer-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seto {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class N>
using FloatTag = hn::ScalableTag<typename N::Float>;

// The largest magnitude, as an integer: infinities and NaN compare larger than finite numbers.
template <class F, class N>
HWY_INLINE WordOf<typename N::Float> largest_of(const typename N::Storage* numbers) {
  const FloatTag<N> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::RebindToSigned<decltype(d)> di;
  constexpr std::size_t kStep = hn::MaxLanes(FloatTag<N>());
  const auto mask = hn::Set(du, Lane<typename N::Float>::kMagnitude);
  const auto magnitude = [&](std::size_t i) { return hn::And(words_of(d, N::load(d, numbers + i)), mask); };
  auto even = magnitude(0);
  auto odd = magnitude(kStep);
  for (std::size_t i = 2 * kStep; i < F::kElements; i += 2 * kStep) {
    even = larger_of(d, even, magnitude(i));
    odd = larger_of(d, odd, magnitude(i + kStep));
  }
  const auto largest = hn::MaxOfLanes(di, hn::BitCast(di, larger_of(d, even, odd)));
  return static_cast<WordOf<typename N::Float>>(hn::GetLane(largest));
}

template <class F, class N>
HWY_INLINE WordOf<typename N::Float> largest_finite_of(const typename N::Storage* numbers) {
  using L = Lane<typename N::Float>;
  const hn::CappedTag<typename N::Float, 1> d;
  typename L::Word largest = 0;
  for (std::size_t i = 0; i < F::kElements; ++i) {
    const auto magnitude = static_cast<typename L::Word>(hn::GetLane(words_of(d, N::load(d, numbers + i))) & L::kMagnitude);
    if (magnitude < L::kInfinity && magnitude > largest) largest = magnitude;
  }
  return largest;
}

// Integers are compared, because a comparison of floats may treat a denormal as zero.
template <class D>
HWY_INLINE Words<D> at_most(D, Words<D> magnitude, float most) {
  const hn::RebindToSigned<D> di;
  using L = Lane<hn::TFromD<D>>;
  const auto bound = static_cast<hwy::MakeSigned<hn::TFromD<D>>>(L::word_of(static_cast<hn::TFromD<D>>(most)));
  return hn::BitCast(hn::RebindToUnsigned<D>(), hn::Min(hn::BitCast(di, magnitude), hn::Set(di, bound)));
}

inline void put_header(BlockHeader header, std::uint8_t* encoded) { std::memcpy(encoded, &header, sizeof header); }

template <class F, class N>
struct CarefulScale {
  using Float = typename N::Float;
  Float factor;
  bool lifts;

  // Writes the header.
  static CarefulScale of(WordOf<Float> largest, std::uint8_t* encoded) {
    using L = Lane<Float>;
    if constexpr (F::kHeader == 0) {
      return {1, false};
    } else {
      const bool lifts = largest < kSmallestUsual<Float>;
      const int lifted = lifts ? L::kLift : 0;
      Scaling scaling{1, {0, 0}};
      if (largest != 0) {
        const hn::CappedTag<Float, 1> d;
        const auto words = hn::Set(hn::RebindToUnsigned<decltype(d)>(), largest);
        scaling = F::template scaling<Float>(lifts ? hn::GetLane(words_of(d, lift(d, words))) : largest, lifted);
      }
      put_header(scaling.header, encoded);
      const int power = largest == 0 ? 0 : -scaling.header.exponent - lifted;
      return {static_cast<Float>(scaling.factor) * L::power(power), lifts};
    }
  }
};

// Encodes blocks with infinities, NaN or numbers too large for the format, and blocks of zeros only or of numbers near the limits
// of fp32 only. It gives the same codes as encode_block where both can be used.
template <class F, class N, class Rounding>
HWY_NOINLINE void encode_careful(const typename N::Storage* numbers, std::uint8_t* encoded, Rounding rounding,
                                 WordOf<typename N::Float> largest) {
  using L = Lane<typename N::Float>;
  const FloatTag<N> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  if (largest >= L::kInfinity) {
    if constexpr (!F::kHoldsSpecials) {
      put_header({kNotFinite, 0}, encoded);
      std::memset(encoded + F::kHeader, 0, F::kPayload);
      return;
    }
    largest = largest_finite_of<F, N>(numbers);
  }
  const auto scale = CarefulScale<F, N>::of(largest, encoded);
  const auto factor = hn::Set(d, scale.factor);
  for (std::size_t i = 0; i < F::kElements; i += hn::MaxLanes(d)) {
    const auto v = N::load(d, numbers + i);
    const auto words = words_of(d, v);
    const auto special = not_finite(d, words);
    const auto magnitude = hn::IfThenZeroElse(special, hn::And(words, hn::Set(du, L::kMagnitude)));
    const auto scaled = F::kHeader == 0 ? hn::BitCast(d, at_most(d, magnitude, Brain::kLargest))
                                        : hn::Mul(scale.lifts ? lift(d, magnitude) : hn::BitCast(d, magnitude), factor);
    auto codes = F::code(d, hn::CopySignToAbs(scaled, v), rounding, i);
    if constexpr (F::kHoldsSpecials) codes = hn::IfThenElse(special, special_code<typename F::Format>(d, words), codes);
    F::store(d, codes, encoded + F::kHeader, i);
  }
}

// The properties of a block that its encoding needs.
template <class F, class N>
struct Measure {
  WordOf<typename N::Float> largest;
  typename N::Float factor;
  BlockHeader header;

  // For unusual blocks only `largest` is valid.
  static HWY_INLINE Measure of(const typename N::Storage* numbers) {
    using T = typename N::Float;
    Measure measure{largest_of<F, N>(numbers), 1, {0, 0}};
    if constexpr (F::kHeader != 0) {
      const Scaling scaling = F::template scaling<T>(measure.largest, 0);
      measure.factor = static_cast<T>(scaling.factor) * Lane<T>::power(-scaling.header.exponent);
      measure.header = scaling.header;
    }
    return measure;
  }
};

template <class F, class N, class Rounding>
HWY_INLINE void encode_block(const typename N::Storage* numbers, std::uint8_t* encoded, Rounding rounding,
                             const Measure<F, N>& measure) {
  const FloatTag<N> d;
  if (HWY_UNLIKELY(!F::template is_usual<typename N::Float>(measure.largest)))
    return encode_careful<F, N>(numbers, encoded, rounding, measure.largest);
  if constexpr (F::kHeader == 0) {
    for (std::size_t i = 0; i < F::kElements; i += hn::MaxLanes(d)) F::put(d, N::load(d, numbers + i), rounding, encoded, i);
  } else {
    put_header(measure.header, encoded);
    const auto factor = hn::Set(d, measure.factor);
    for (std::size_t i = 0; i < F::kElements; i += hn::MaxLanes(d))
      F::put(d, hn::Mul(N::load(d, numbers + i), factor), rounding, encoded + F::kHeader, i);
  }
}

// A group has as many blocks as give the elements of the largest block, so that short blocks are measured side by side. Between
// the largest magnitude and the first code lies a chain of dependent instructions (for int8 about 100 cycles), which a processor
// can only overlap with the encoding of other blocks. So a group is measured while the group before it is encoded.
template <class F, class N>
struct Group {
  static constexpr std::size_t kBlocks = kBlock / F::kElements;
  static constexpr std::size_t kSize = kBlocks * (F::kHeader + F::kPayload);
  Measure<F, N> measures[kBlocks];

  static HWY_INLINE Group of(const typename N::Storage* numbers) {
    Group group;
    for (std::size_t k = 0; k < kBlocks; ++k) group.measures[k] = Measure<F, N>::of(numbers + k * F::kElements);
    return group;
  }

  template <class Rounding>
  HWY_INLINE void encode(const typename N::Storage* numbers, std::uint8_t* encoded, const EncodeCall& call,
                         std::size_t done) const {
    for (std::size_t k = 0; k < kBlocks; ++k) {
      const std::size_t at = k * F::kElements;
      encode_block<F, N>(numbers + at, encoded + k * (F::kHeader + F::kPayload), Rounding::of(call, done + at), measures[k]);
    }
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace seto
HWY_AFTER_NAMESPACE();

#endif
