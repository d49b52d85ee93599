// Codes of the integer formats. Included once for each instruction set.
#if defined(SETO_CODEC_INTEGER_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SETO_CODEC_INTEGER_INL_H
#undef SETO_CODEC_INTEGER_INL_H
#else
#define SETO_CODEC_INTEGER_INL_H
#endif

#include "src/codec/number-inl.h"
#include "src/codec/rounding-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seto {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// int8: one byte for each element.
struct WholeBytes {
  static constexpr int kWide = 0;

  template <class D>
  static HWY_INLINE void store(D, Words<D> codes, std::uint8_t* payload, std::size_t i) {
    const hn::Rebind<std::uint8_t, D> db;
    hn::StoreU(hn::TruncateTo(db, codes), db, payload + i);
  }

  template <class D>
  static HWY_INLINE hn::Vec<hn::Rebind<std::int8_t, D>> load(D, const std::uint8_t* payload, std::size_t i) {
    return hn::LoadU(hn::Rebind<std::int8_t, D>(), reinterpret_cast<const std::int8_t*>(payload) + i);
  }
};

// int4: two elements in a byte, the first in the low half. When read, a code is in the upper half of its byte, so it is 2^4 times
// as large.
struct HalfBytes {
  static constexpr int kWide = -4;

  template <class D>
  static HWY_INLINE void store(D, Words<D> codes, std::uint8_t* payload, std::size_t i) {
    const hn::Rebind<std::uint8_t, D> db;
    const auto bytes = hn::TruncateTo(db, codes);
    if constexpr (hn::MaxLanes(D()) == 1) {
      const auto code = static_cast<unsigned>(hn::GetLane(bytes));
      const unsigned low = i % 2 == 0 ? code : payload[i / 2];
      payload[i / 2] = static_cast<std::uint8_t>((low & 0xF) | (i % 2 == 0 ? 0 : code << 4));
    } else {
      const hn::Repartition<std::uint16_t, decltype(db)> dp;
      const hn::Rebind<std::uint8_t, decltype(dp)> dh;
      const auto pairs = hn::BitCast(dp, bytes);
      const auto low = hn::And(pairs, hn::Set(dp, std::uint16_t{0x0F}));
      const auto high = hn::And(hn::ShiftRight<4>(pairs), hn::Set(dp, std::uint16_t{0xF0}));
      hn::StoreU(hn::TruncateTo(dh, hn::Or(low, high)), dh, payload + i / 2);
    }
  }

  template <class D>
  static HWY_INLINE hn::Vec<hn::Rebind<std::int8_t, D>> load(D, const std::uint8_t* payload, std::size_t i) {
    const hn::Rebind<std::int8_t, D> db;
    if constexpr (hn::MaxLanes(D()) == 1) {
      const unsigned byte = payload[i / 2];
      return hn::Set(db, static_cast<std::int8_t>(i % 2 == 0 ? byte << 4 : byte & 0xF0));
    } else {
      const hn::Repartition<std::uint16_t, decltype(db)> dp;
      const auto pairs = hn::PromoteTo(dp, hn::LoadU(hn::Rebind<std::uint8_t, decltype(dp)>(), payload + i / 2));
      const auto low = hn::And(hn::ShiftLeft<4>(pairs), hn::Set(dp, std::uint16_t{0xF0}));
      const auto high = hn::ShiftLeft<8>(hn::And(pairs, hn::Set(dp, std::uint16_t{0xF0})));
      return hn::BitCast(db, hn::Or(low, high));
    }
  }
};

// int8 and int4: the numbers of a block are multiples of a scale. The scale is the largest magnitude divided by kMost, rounded up
// to 17 bits, so that a multiple fits the 24 bits of fp32.
template <class F, class Packing, std::size_t kCount>
struct ScaledInteger {
  using Format = F;
  static constexpr std::size_t kElements = kCount;
  static constexpr std::size_t kHeader = sizeof(BlockHeader);
  static constexpr std::size_t kPayload = kElements * static_cast<std::size_t>(F::kBits) / 8;
  static constexpr bool kHoldsSpecials = false;
  static constexpr int kWide = Packing::kWide;

  template <class T>
  static bool is_usual(WordOf<T> largest) {
    return largest >= kSmallestUsual<T> && largest < Lane<T>::kInfinity;
  }

  template <class T>
  static Scaling scaling(WordOf<T> largest, int lifted) {
    using L = Lane<T>;
    const int exponent = static_cast<int>(largest >> L::kFraction) - L::kBias - lifted;
    const double significand = static_cast<double>(L::from_word((largest & ~L::kInfinity) | L::kOne));
    constexpr int kCut = Lane<double>::kFraction - 16;
    const std::uint64_t quotient = Lane<double>::word_of(significand / F::kMost) + ((std::uint64_t{1} << kCut) - 1);
    const auto fraction = static_cast<std::uint16_t>(quotient >> kCut);
    const int shift = static_cast<int>(quotient >> Lane<double>::kFraction) - Lane<double>::kBias;
    return {1 / (1 + fraction * 0x1p-16), {static_cast<std::int16_t>(exponent + shift), fraction}};
  }

  template <class D, class Rounding>
  static HWY_INLINE Words<D> code(D d, hn::Vec<D> v, const Rounding& rounding, std::size_t i) {
    using L = Lane<hn::TFromD<D>>;
    const hn::RebindToUnsigned<D> du;
    if constexpr (Rounding::kByChance) {
      constexpr int kFine = 23;  // bits of a step that stochastic rounding uses
      constexpr auto kOffset = typename L::Word{F::kMost + 1};
      const auto most = hn::Set(d, hn::TFromD<D>{F::kMost});
      const auto within = hn::Min(hn::Max(v, hn::Neg(most)), most);
      const auto fine = to_integer(d, hn::Mul(within, hn::Set(d, L::power(kFine))));
      const auto raised = hn::Add(fine, hn::Set(du, kOffset << kFine));
      const auto cut = hn::ShiftRight<kFine>(hn::Add(raised, hn::ShiftRight<32 - kFine>(rounding.random(d, i))));
      return hn::Sub(cut, hn::Set(du, kOffset));
    } else {
      // The adder rounds; the low bits of the sum are the integer.
      constexpr auto kAnchor = L::power_word(L::kFraction) | (typename L::Word{1} << (L::kFraction - 1));
      return words_of(d, hn::Add(v, hn::Set(d, L::from_word(kAnchor))));
    }
  }

  template <class D>
  static HWY_INLINE void store(D d, Words<D> codes, std::uint8_t* payload, std::size_t i) {
    Packing::store(d, codes, payload, i);
  }

  template <class D, class Rounding>
  static HWY_INLINE void put(D d, hn::Vec<D> v, const Rounding& rounding, std::uint8_t* payload, std::size_t i) {
    store(d, code(d, v, rounding, i), payload, i);
  }

  // One float for each code, to be multiplied by 2^kWide.
  template <class D>
  static HWY_INLINE hn::Vec<D> wide(D d, const std::uint8_t* payload, std::size_t i) {
    return hn::ConvertTo(d, hn::PromoteTo(hn::RebindToSigned<D>(), Packing::load(d, payload, i)));
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace seto
HWY_AFTER_NAMESPACE();

#endif
