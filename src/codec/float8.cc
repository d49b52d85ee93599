// Highway depends on the order of these lines. clang-format off
#include "src/device/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/codec/float8.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "src/base/check.h"
#include "src/codec/walk-inl.h"
#include "src/device/instruction_sets.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace seto {
namespace HWY_NAMESPACE {

template <class F>
CodecKernels float8_kernels_from(DataType type) {
  if (type == DataType::bfloat16) return kernels_of<F, Brain>();
  return type == DataType::float64 ? kernels_of<F, Plain<double>>() : kernels_of<F, Plain<float>>();
}

CodecKernels choose_float8(Codec codec, DataType type) {
  if (codec == Codec::e4m3) return float8_kernels_from<ScaledFloat<E4m3Format, Float8e4m3>>(type);
  SETO_CHECK(codec == Codec::e5m2);
  return float8_kernels_from<ScaledFloat<E5m2Format, Float8e5m2>>(type);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace seto
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seto {

CodecKernels float8_kernels(Codec codec, DataType type) {
  static constexpr CodecKernels (*kChoose[])(Codec, DataType) = SETO_EVERY_SET(choose_float8);
  return kChoose[chosen_set()](codec, type);
}

}  // namespace seto
#endif
