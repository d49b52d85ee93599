// Order matters to highway. clang-format off
#include "src/device/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/device/reduce_integer.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "src/device/instruction_sets.h"
#include "src/device/pass-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace seto {
namespace HWY_NAMESPACE {

ReduceFunction choose_integer(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::int8:
      return function_for<Itself<std::int8_t>, false>(op);
    case DataType::uint8:
      return function_for<Itself<std::uint8_t>, false>(op);
    case DataType::int32:
      return function_for<Itself<std::int32_t>, false>(op);
    case DataType::uint32:
      return function_for<Itself<std::uint32_t>, false>(op);
    case DataType::int64:
      return function_for<Itself<std::int64_t>, false>(op);
    default:
      return function_for<Itself<std::uint64_t>, false>(op);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace seto
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seto {

ReduceFunction integer_reduce_function(DataType type, ReduceOp op) {
  static constexpr ReduceFunction (*kChoose[])(DataType, ReduceOp) = SETO_EVERY_SET(choose_integer);
  return kChoose[chosen_set()](type, op);
}

}  // namespace seto
#endif
