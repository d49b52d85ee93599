// Highway depends on the order of these lines. clang-format off
#include "src/device/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/codec/integer.cc"
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
CodecKernels integer_kernels_from(DataType type) {
  if (type == DataType::bfloat16) return kernels_of<F, Brain>();
  return type == DataType::float64 ? kernels_of<F, Plain<double>>() : kernels_of<F, Plain<float>>();
}

CodecKernels choose_integer(Codec codec, DataType type) {
  if (codec == Codec::int8) return integer_kernels_from<ScaledInteger<IntegerFormat<8>, WholeBytes, kBlock>>(type);
  SETO_CHECK(codec == Codec::int4);
  return integer_kernels_from<ScaledInteger<IntegerFormat<4>, HalfBytes, kInt4Block>>(type);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace seto
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seto {

CodecKernels integer_kernels(Codec codec, DataType type) {
  static constexpr CodecKernels (*kChoose[])(Codec, DataType) = SETO_EVERY_SET(choose_integer);
  return kChoose[chosen_set()](codec, type);
}

}  // namespace seto
#endif
