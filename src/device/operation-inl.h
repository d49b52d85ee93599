// The operations of a fold on two lanes. Included once for each instruction set.
#if defined(SETO_DEVICE_OPERATION_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SETO_DEVICE_OPERATION_INL_H
#undef SETO_DEVICE_OPERATION_INL_H
#else
#define SETO_DEVICE_OPERATION_INL_H
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace seto {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> multiply(D d, hn::Vec<D> a, hn::Vec<D> b) {
  using T = hn::TFromD<D>;
  if constexpr (sizeof(T) > 1) {
    return hn::Mul(a, b);
  } else if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::Set(d, static_cast<T>(static_cast<unsigned>(hn::GetLane(a)) * static_cast<unsigned>(hn::GetLane(b))));
  } else {
    // There is no multiplication of bytes: this takes the low bytes of two 16-bit products, one for even and one for odd lanes.
    const hn::Repartition<std::uint16_t, D> d16;
    const auto a16 = hn::BitCast(d16, a);
    const auto b16 = hn::BitCast(d16, b);
    const auto even = hn::And(hn::Mul(a16, b16), hn::Set(d16, std::uint16_t{0xFF}));
    const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(a16), hn::ShiftRight<8>(b16)));
    return hn::BitCast(d, hn::Or(even, odd));
  }
}

struct Sum {
  template <class D>
  static HWY_INLINE hn::Vec<D> fold(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Add(a, b);
  }
};

struct Product {
  template <class D>
  static HWY_INLINE hn::Vec<D> fold(D d, hn::Vec<D> a, hn::Vec<D> b) {
    return multiply(d, a, b);
  }
};

// maximum and minimum of IEEE 754-2019: NaN is returned if present, and -0 is less than +0. Processors' instructions differ on
// both.
struct Maximum {
  template <class D>
  static HWY_INLINE hn::Vec<D> fold(D, hn::Vec<D> a, hn::Vec<D> b) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      const auto greater = hn::IfThenElse(hn::Gt(a, b), a, b);
      const auto tied = hn::IfThenElse(hn::Eq(a, b), hn::And(a, b), greater);
      return hn::IfThenElse(hn::IsNaN(a), a, tied);
    } else {
      return hn::Max(a, b);
    }
  }
};

struct Minimum {
  template <class D>
  static HWY_INLINE hn::Vec<D> fold(D, hn::Vec<D> a, hn::Vec<D> b) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      const auto less = hn::IfThenElse(hn::Lt(a, b), a, b);
      const auto tied = hn::IfThenElse(hn::Eq(a, b), hn::Or(a, b), less);
      return hn::IfThenElse(hn::IsNaN(a), a, tied);
    } else {
      return hn::Min(a, b);
    }
  }
};

struct BitAnd {
  template <class D>
  static HWY_INLINE hn::Vec<D> fold(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::And(a, b);
  }
};

struct BitOr {
  template <class D>
  static HWY_INLINE hn::Vec<D> fold(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Or(a, b);
  }
};

struct BitXor {
  template <class D>
  static HWY_INLINE hn::Vec<D> fold(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Xor(a, b);
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace seto
HWY_AFTER_NAMESPACE();

#endif
