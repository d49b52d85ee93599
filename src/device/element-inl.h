// How each data type is loaded into lanes of its accumulator and rounded back. Included once for each instruction set.
#if defined(SETO_DEVICE_ELEMENT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SETO_DEVICE_ELEMENT_INL_H
#undef SETO_DEVICE_ELEMENT_INL_H
#else
#define SETO_DEVICE_ELEMENT_INL_H
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace seto {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class E, class D>
using Raw = hn::Vec<hn::Rebind<typename E::Storage, D>>;

// Payload and sign of a NaN depend on operand order and architecture, so every NaN that leaves a fold becomes this one.
template <class D>
HWY_INLINE hn::Vec<D> one_nan(D d, hn::Vec<D> v) {
  using T = hn::TFromD<D>;
  if constexpr (hwy::IsFloat<T>()) {
    const hn::RebindToUnsigned<D> du;
    constexpr auto kNan = sizeof(T) == 4 ? std::uint64_t{0x7FC00000} : std::uint64_t{0x7FF8000000000000};
    return hn::IfThenElse(hn::IsNaN(v), hn::BitCast(d, hn::Set(du, static_cast<hn::TFromD<decltype(du)>>(kNan))), v);
  } else {
    return v;
  }
}

// Types that accumulate in themselves.
template <class T>
struct Itself {
  using Storage = T;
  using Lane = T;
  template <class D>
  static HWY_INLINE hn::Vec<D> widen(D, Raw<Itself, D> raw) {
    return raw;
  }
  template <class D>
  static HWY_INLINE Raw<Itself, D> narrow(D d, hn::Vec<D> v) {
    return one_nan(d, v);
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> round(D, hn::Vec<D> v) {
    return v;
  }
};

// A float format of sign, exponent and fraction with subnormals, in integer arithmetic and with float operations on normal
// numbers only: neither the instruction set nor flush-to-zero of the calling thread shows in the result.
template <int kExponentBits, int kFractionBits, bool kHasInfinity>
struct Format {
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kShift = 23 - kFractionBits;
  static constexpr std::uint32_t kMagnitude = (1u << (kExponentBits + kFractionBits)) - 1;
  static constexpr std::uint32_t kSign = kMagnitude + 1;
  static constexpr std::uint32_t kInfinity = ((1u << kExponentBits) - 1) << kFractionBits;  // where it exists
  static constexpr std::uint32_t kNan = kHasInfinity ? kInfinity | (1u << (kFractionBits - 1)) : kMagnitude;
  static constexpr std::uint32_t kOverflow = kHasInfinity ? kInfinity : kMagnitude - 1;  // what too large becomes
  static constexpr std::uint32_t kSmallestNormal = static_cast<std::uint32_t>(128 - kBias) << 23;
  static constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - kBias) << 23;

  template <class D>
  static HWY_INLINE hn::Vec<D> widen(D d, hn::Vec<hn::RebindToUnsigned<D>> bits) {
    const hn::RebindToUnsigned<D> du;
    const auto magnitude = hn::And(bits, hn::Set(du, kMagnitude));
    const auto sign = hn::ShiftLeft<31 - kExponentBits - kFractionBits>(hn::And(bits, hn::Set(du, kSign)));
    const auto placed = hn::ShiftLeft<kShift>(magnitude);
    auto value = hn::Add(placed, hn::Set(du, kRebias));
    // A subnormal gets the exponent of the smallest normal and its hidden one, which the subtraction takes off again.
    const auto lifted = hn::BitCast(d, hn::Add(placed, hn::Set(du, kSmallestNormal)));
    const auto subnormal = hn::Sub(lifted, hn::BitCast(d, hn::Set(du, kSmallestNormal)));
    value = hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 1u << kFractionBits)), hn::BitCast(du, subnormal), value);
    if constexpr (kHasInfinity) {
      value = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, kInfinity - 1)), hn::Or(placed, hn::Set(du, 0x7F800000u)), value);
    } else {
      value = hn::IfThenElse(hn::Eq(magnitude, hn::Set(du, kNan)), hn::Set(du, 0x7FC00000u), value);
    }
    return hn::BitCast(d, hn::Or(value, sign));
  }

  // To nearest even, in 32-bit lanes.
  template <class D>
  static HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> narrow(D d, hn::Vec<D> v) {
    const hn::RebindToUnsigned<D> du;
    const auto bits = hn::BitCast(du, v);
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFFFFFFu));
    const auto sign = hn::And(hn::ShiftRight<31 - kExponentBits - kFractionBits>(bits), hn::Set(du, kSign));
    const auto odd = hn::And(hn::ShiftRight<kShift>(magnitude), hn::Set(du, 1u));
    const auto half = hn::Set(du, (1u << (kShift - 1)) - 1 - kRebias);
    const auto normal = hn::ShiftRight<kShift>(hn::Add(hn::Add(magnitude, half), odd));
    // Adding a number whose last place is the smallest subnormal lets the adder round.
    constexpr std::uint32_t kLast = static_cast<std::uint32_t>(127 + 24 - kBias - kFractionBits) << 23;
    const auto rounder = hn::Set(du, kLast);
    const auto summed = hn::Add(hn::BitCast(d, magnitude), hn::BitCast(d, rounder));
    const auto subnormal = hn::Sub(hn::BitCast(du, summed), rounder);
    auto result =
        hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, kSmallestNormal)), subnormal, hn::Min(normal, hn::Set(du, kOverflow)));
    result = hn::Or(result, sign);
    return hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x7F800000u)), hn::Set(du, kNan), result);
  }
};

template <class F, class S>
struct Narrow {
  using Storage = S;
  using Lane = float;
  template <class D>
  static HWY_INLINE hn::Vec<D> widen(D d, Raw<Narrow, D> raw) {
    const hn::Rebind<std::uint32_t, D> du;
    return F::widen(d, hn::PromoteTo(du, raw));
  }
  template <class D>
  static HWY_INLINE Raw<Narrow, D> narrow(D d, hn::Vec<D> v) {
    const hn::Rebind<std::int32_t, D> di;
    return hn::DemoteTo(hn::Rebind<S, D>(), hn::BitCast(di, F::narrow(d, v)));
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> round(D d, hn::Vec<D> v) {
    return F::widen(d, F::narrow(d, v));
  }
};

struct BrainFormat {
  template <class D>
  static HWY_INLINE hn::Vec<D> widen(D d, hn::Vec<hn::RebindToUnsigned<D>> bits) {
    return hn::BitCast(d, hn::ShiftLeft<16>(bits));
  }
  template <class D>
  static HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> narrow(D d, hn::Vec<D> v) {
    const hn::RebindToUnsigned<D> du;
    const auto bits = hn::BitCast(du, one_nan(d, v));
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
    return hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(du, 0x7FFFu)), odd));
  }
};

// The machine's own conversion where it has one: it agrees with Format<5, 10, true> bit for bit once NaN is made one.
struct NativeHalf {
  using Storage = std::uint16_t;
  using Lane = float;
  template <class D>
  static HWY_INLINE hn::Vec<D> widen(D d, Raw<NativeHalf, D> raw) {
    return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), raw));
  }
  template <class D>
  static HWY_INLINE Raw<NativeHalf, D> narrow(D d, hn::Vec<D> v) {
    return hn::BitCast(hn::Rebind<Storage, D>(), hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), one_nan(d, v)));
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> round(D d, hn::Vec<D> v) {
    return widen(d, narrow(d, v));
  }
};

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
using Float16 = NativeHalf;
#else
using Float16 = Narrow<Format<5, 10, true>, std::uint16_t>;
#endif
using Bfloat16 = Narrow<BrainFormat, std::uint16_t>;
using Float8e4m3 = Narrow<Format<4, 3, false>, std::uint8_t>;
using Float8e5m2 = Narrow<Format<5, 2, true>, std::uint8_t>;

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace seto
HWY_AFTER_NAMESPACE();

#endif
