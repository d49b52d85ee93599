// Highway depends on the order of these lines. clang-format off
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

// Bitwise operations ignore the sign, so signed types share the kernels of unsigned types.
template <class T>
ReduceFunction function_of_bits(ReduceOp op) {
  switch (op) {
    case ReduceOp::bit_and:
      return reduce<Itself<T>, BitAnd, false>;
    case ReduceOp::bit_or:
      return reduce<Itself<T>, BitOr, false>;
    default:
      return reduce<Itself<T>, BitXor, false>;
  }
}

ReduceFunction choose_bits(DataType type, ReduceOp op) {
  if (type == DataType::int8 || type == DataType::uint8) return function_of_bits<std::uint8_t>(op);
  if (type == DataType::int32 || type == DataType::uint32) return function_of_bits<std::uint32_t>(op);
  return function_of_bits<std::uint64_t>(op);
}

ReduceFunction choose_integer(DataType type, ReduceOp op) {
  if (is_bitwise(op)) return choose_bits(type, op);
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
