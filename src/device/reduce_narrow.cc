// Highway depends on the order of these lines. clang-format off
#include "src/device/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/device/reduce_narrow.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "src/device/instruction_sets.h"
#include "src/device/pass-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace seto {
namespace HWY_NAMESPACE {

ReduceFunction choose_narrow(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::float16:
      return function_for<Float16, false>(op);
    case DataType::bfloat16:
      return function_for<Bfloat16, false>(op);
    case DataType::float8e4m3:
      return function_for<Float8e4m3, false>(op);
    default:
      return function_for<Float8e5m2, false>(op);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace seto
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seto {

ReduceFunction narrow_reduce_function(DataType type, ReduceOp op) {
  static constexpr ReduceFunction (*kChoose[])(DataType, ReduceOp) = SETO_EVERY_SET(choose_narrow);
  return kChoose[chosen_set()](type, op);
}

}  // namespace seto
#endif
