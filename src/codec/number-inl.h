// The types of the numbers that are encoded: conversions to lanes and back. Included once for each instruction set.
#if defined(SETO_CODEC_NUMBER_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SETO_CODEC_NUMBER_INL_H
#undef SETO_CODEC_NUMBER_INL_H
#else
#define SETO_CODEC_NUMBER_INL_H
#endif

#include "src/codec/lane-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seto {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A type whose computations use the type itself.
template <class T>
struct Plain {
  using Storage = T;
  using Float = T;
  static constexpr T kLargest = sizeof(T) == 4 ? static_cast<T>(3.4028234663852886e38) : static_cast<T>(1.7976931348623157e308);

  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const T* p) {
    return hn::LoadU(d, p);
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> v, T* p) {
    hn::StoreU(v, d, p);
  }
};

struct Brain {
  using Storage = std::uint16_t;
  using Float = float;
  static constexpr float kLargest = 3.3895313892515355e38F;

  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const Storage* p) {
    return Bfloat16::widen(d, hn::LoadU(hn::Rebind<Storage, D>(), p));
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> v, Storage* p) {
    hn::StoreU(Bfloat16::narrow(d, v), hn::Rebind<Storage, D>(), p);
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace seto
HWY_AFTER_NAMESPACE();

#endif
