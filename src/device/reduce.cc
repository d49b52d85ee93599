#include "src/device/reduce.h"

// Order matters to highway.
// clang-format off
#include "src/device/simd.h"
#include "hwy/highway.h"
// clang-format on

namespace seto {

ReduceFunction reduce_function(DataType type, ReduceOp op) {
  if (op == ReduceOp::avg || op == ReduceOp::premul_sum) op = ReduceOp::sum;
  if (is_integer(type)) return integer_reduce_function(type, op);
  if (accumulates_in_itself(type)) return float_reduce_function(type, op);
  return narrow_reduce_function(type, op);
}

const char* instruction_set() {
  const std::int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(usable == 0 ? HWY_STATIC_TARGET : usable & -usable);
}

}  // namespace seto
