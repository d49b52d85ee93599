#include "src/engine/kernels/entries.h"

namespace seto::kernels {

// Two rows would take two registers more than kRegisterGoal.
template <>
inline constexpr int kFewRows<Number<DataType::int8>, 3> = 1;

}  // namespace seto::kernels

SETO_PLAIN_KERNEL(int8, int8)
