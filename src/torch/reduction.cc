#include "src/torch/reduction.h"

#include <c10/util/Exception.h>

namespace seto::torch_backend {
namespace {

// One number of the type that is summed; undefined where there is no factor.
at::Tensor factor_of(const c10d::ReduceOp& op, at::ScalarType type) {
  if (op.op_ != c10d::ReduceOp::PREMUL_SUM) return {};
  const auto* const supplement = static_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK_VALUE(supplement != nullptr, "seto: premul_sum without its factor");
  const at::ScalarType real = c10::isComplexType(type) ? c10::toRealValueType(type) : type;
  if (supplement->tensor_factor.defined()) return supplement->tensor_factor.detach().to(at::kCPU, real).contiguous();
  return at::scalar_tensor(supplement->double_factor, at::dtype(real));
}

}  // namespace

Reduction::Reduction(at::ScalarType type, const c10d::ReduceOp& op)
    : as(reduced_as(type, op)), memory(as.widened_to.value_or(type)), factor(factor_of(op, memory)) {}

Operation::Operation(const Channel::Seat& seat, const Reduction& how) : comm_(seat.comm) {
  if (how.as.op) {
    number_ = *how.as.op;
    return;
  }
  result_ = setoRedOpCreatePreMulSum(&number_, how.factor.data_ptr(), how.as.type, setoScalarHostImmediate, comm_);
  made_ = result_ == setoSuccess;
}

Operation::~Operation() {
  if (made_) (void)setoRedOpDestroy(number_, comm_);
}

}  // namespace seto::torch_backend
