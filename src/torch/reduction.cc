#include "src/torch/reduction.h"

#include "src/torch/arguments.h"

namespace seto::torch_backend {
namespace {

// The factor as one number of the type that is summed. Undefined if there is no factor.
at::Tensor factor_of(const c10d::ReduceOp& op, at::ScalarType type) {
  if (op.op_ != c10d::ReduceOp::PREMUL_SUM) return {};
  const auto* const supplement = static_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
  Arguments("premul_sum").check(supplement != nullptr, "the factor is missing");
  const at::ScalarType real = c10::isComplexType(type) ? c10::toRealValueType(type) : type;
  const at::Tensor given = supplement->tensor_factor.defined()
                               ? supplement->tensor_factor.detach().to(at::kCPU)
                               : at::scalar_tensor(supplement->double_factor, at::dtype(at::kDouble));
  const at::Tensor factor = given.to(real).contiguous();
  Arguments("premul_sum")
      .check(!c10::isIntegralType(real, true) || factor.to(given.scalar_type()).equal(given),
             "a factor that is not an integer, of ", real);
  return factor;
}

}  // namespace

Reduction::Reduction(at::ScalarType type, const c10d::ReduceOp& op)
    : as(reduced_as(type, op)), memory(as.widened_to.value_or(type)), factor(factor_of(op, memory)) {}

at::Tensor folded(const std::vector<at::Tensor>& tensors, const c10d::ReduceOp& op) {
  if (tensors.size() == 1) return tensors.front();
  (void)reduced_as(tensors.front().scalar_type(), op);
  const at::NoGradGuard no_grad;
  const auto pair = [&](const at::Tensor& one, const at::Tensor& other) {
    switch (op.op_) {
      case c10d::ReduceOp::SUM:
        return at::add(one, other);
      case c10d::ReduceOp::PRODUCT:
        return at::mul(one, other);
      case c10d::ReduceOp::MIN:
        return at::minimum(one, other);
      case c10d::ReduceOp::MAX:
        return at::maximum(one, other);
      case c10d::ReduceOp::BAND:
        return at::bitwise_and(one, other);
      case c10d::ReduceOp::BOR:
        return at::bitwise_or(one, other);
      case c10d::ReduceOp::BXOR:
        return at::bitwise_xor(one, other);
      default:
        Arguments("all_reduce").refuse("averages and sums with a factor take one tensor on each rank");
    }
  };
  at::Tensor fold = tensors.front().detach();
  try {
    for (std::size_t index = 1; index < tensors.size(); ++index) fold = pair(fold, tensors[index].detach());
  } catch (const ArgumentError&) {
    throw;
  } catch (const c10::Error& error) {  // torch has no arithmetic for this type
    Arguments("all_reduce").refuse(c10::str("several tensors on one rank: ", error.what_without_backtrace()));
  }
  return fold;
}

Operation::Operation(const Communicator::IssueTarget& target, const Reduction& how) : comm_(target.comm) {
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
