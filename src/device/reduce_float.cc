// Highway depends on the order of these lines. clang-format off
#include "src/device/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/device/reduce_float.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "src/device/instruction_sets.h"
#include "src/device/pass-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace seto {
namespace HWY_NAMESPACE {

ReduceFunction choose_float(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::float32:
      return function_for<Itself<float>, true>(op);
    default:
      return function_for<Itself<double>, true>(op);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace seto
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seto {

ReduceFunction float_reduce_function(DataType type, ReduceOp op) {
  static constexpr ReduceFunction (*kChoose[])(DataType, ReduceOp) = SETO_EVERY_SET(choose_float);
  return kChoose[chosen_set()](type, op);
}

}  // namespace seto
#endif
