#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "src/torch/communicator.h"
#include "src/torch/types.h"

namespace seto::torch_backend {

// How a reduction runs on tensors of a type: torch's type, the library's type, and the factor before the sum, if any. Throws
// ArgumentError if the reduction does not exist for the type.
struct Reduction {
  Reduction(at::ScalarType type, const c10d::ReduceOp& op);

  Reduced as;
  at::ScalarType memory;
  at::Tensor factor;
};

// Combines the tensors of one rank into one: the only tensor, or a new one. Throws ArgumentError if that is not possible.
[[nodiscard]] at::Tensor folded(const std::vector<at::Tensor>& tensors, const c10d::ReduceOp& op);

// The library's operation for a reduction, valid while a call is issued. A reduction with a factor is created for each
// communicator.
class Operation final {
 public:
  Operation(const Communicator::IssueTarget& target, const Reduction& how);
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  ~Operation();

  // The result of creating it. If that failed, no call may be issued.
  [[nodiscard]] setoResult_t result() const { return result_; }
  [[nodiscard]] setoRedOp_t get() const { return number_; }

 private:
  setoComm_t comm_;
  setoRedOp_t number_ = setoSum;
  setoResult_t result_ = setoSuccess;
  bool made_ = false;
};

}  // namespace seto::torch_backend
