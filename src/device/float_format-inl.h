// The bits of small float formats: how they become float and back. Included once for each instruction set.
#if defined(SETO_DEVICE_FLOAT_FORMAT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SETO_DEVICE_FLOAT_FORMAT_INL_H
#undef SETO_DEVICE_FLOAT_FORMAT_INL_H
#else
#define SETO_DEVICE_FLOAT_FORMAT_INL_H
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace seto {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A float format of sign, exponent and fraction with subnormals. It uses integer arithmetic, and float operations on normal
// numbers only, so the result depends neither on the instruction set nor on the flush-to-zero mode of the calling thread.
template <int kExponentBits, int kFractionBits, bool kHasInfinity>
struct Format {
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kShift = 23 - kFractionBits;
  static constexpr std::uint32_t kMagnitude = (1u << (kExponentBits + kFractionBits)) - 1;
  static constexpr std::uint32_t kSign = kMagnitude + 1;
  static constexpr std::uint32_t kInfinity = ((1u << kExponentBits) - 1) << kFractionBits;  // if the format has one
  static constexpr std::uint32_t kNan = kHasInfinity ? kInfinity | (1u << (kFractionBits - 1)) : kMagnitude;
  static constexpr std::uint32_t kOverflow = kHasInfinity ? kInfinity : kMagnitude - 1;  // the code of a value that is too large
  static constexpr std::uint32_t kSmallestNormal = static_cast<std::uint32_t>(128 - kBias) << 23;
  static constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - kBias) << 23;

  template <class D>
  static HWY_INLINE hn::Vec<D> widen(D d, hn::Vec<hn::RebindToUnsigned<D>> bits) {
    const hn::RebindToUnsigned<D> du;
    const auto magnitude = hn::And(bits, hn::Set(du, kMagnitude));
    const auto sign = hn::ShiftLeft<31 - kExponentBits - kFractionBits>(hn::And(bits, hn::Set(du, kSign)));
    const auto placed = hn::ShiftLeft<kShift>(magnitude);
    auto value = hn::Add(placed, hn::Set(du, kRebias));
    // A subnormal gets the exponent of the smallest normal number and an implicit leading one, which the subtraction removes.
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

  // Rounds to nearest even, in 32-bit lanes.
  template <class D>
  static HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> narrow(D d, hn::Vec<D> v) {
    const hn::RebindToUnsigned<D> du;
    const auto bits = hn::BitCast(du, v);
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFFFFFFu));
    const auto sign = hn::And(hn::ShiftRight<31 - kExponentBits - kFractionBits>(bits), hn::Set(du, kSign));
    const auto odd = hn::And(hn::ShiftRight<kShift>(magnitude), hn::Set(du, 1u));
    const auto half = hn::Set(du, (1u << (kShift - 1)) - 1 - kRebias);
    const auto normal = hn::ShiftRight<kShift>(hn::Add(hn::Add(magnitude, half), odd));
    // Adding a number whose last place is the smallest subnormal makes the adder round.
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

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace seto
HWY_AFTER_NAMESPACE();
#endif
