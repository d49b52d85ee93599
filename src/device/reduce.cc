#include "src/device/reduce.h"

#include "src/device/instruction_sets.h"

namespace seto {

ReduceFunction reduce_function(DataType type, ReduceOp op) {
  if (op == ReduceOp::avg || op == ReduceOp::premul_sum) op = ReduceOp::sum;
  if (is_integer(type)) return integer_reduce_function(type, op);
  if (accumulates_in_itself(type)) return float_reduce_function(type, op);
  return narrow_reduce_function(type, op);
}

const char* instruction_set() {
  const std::int64_t usable = usable_sets();
  return hwy::TargetName(usable & -usable);
}

}  // namespace seto
