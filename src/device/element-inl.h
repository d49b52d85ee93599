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
#include "src/device/float_format-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seto {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class E, class D>
using Raw = hn::Vec<hn::Rebind<typename E::Storage, D>>;

// The payload and sign of a NaN depend on operand order and architecture, so every NaN that a fold returns is replaced by this
// one.
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

// Types that are accumulated in the type itself.
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

// The processor's own conversion, if it has one. It agrees with Format<5, 10, true> bit for bit once NaN is made canonical.
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
