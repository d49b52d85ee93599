// Highway depends on the order of these lines. clang-format off
#include "src/device/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/codec/half.cc"
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
CodecKernels half_kernels_from(DataType type) {
  return type == DataType::float64 ? kernels_of<F, Plain<double>>() : kernels_of<F, Plain<float>>();
}

CodecKernels choose_half(Codec codec, DataType type) {
  if (codec == Codec::fp16) return half_kernels_from<ScaledFloat<HalfFormat, Float16>>(type);
  SETO_CHECK(codec == Codec::bf16);
  return half_kernels_from<UnscaledBrain>(type);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace seto
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seto {

CodecKernels half_kernels(Codec codec, DataType type) {
  static constexpr CodecKernels (*kChoose[])(Codec, DataType) = SETO_EVERY_SET(choose_half);
  return kChoose[chosen_set()](codec, type);
}

}  // namespace seto
#endif
