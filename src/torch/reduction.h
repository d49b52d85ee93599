#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "src/torch/communicator.h"
#include "src/torch/types.h"

namespace seto::torch_backend {

// How a reduction runs on tensors of a type: in which type of torch, in which of the library, and with which factor before the
// sum, if it has one. Throws ArgumentError for what there is not.
struct Reduction {
  Reduction(at::ScalarType type, const c10d::ReduceOp& op);

  Reduced as;
  at::ScalarType memory;
  at::Tensor factor;
};

// The tensors of one rank as one: the only one, or a new one. Throws ArgumentError for what there is not.
[[nodiscard]] at::Tensor folded(const std::vector<at::Tensor>& tensors, const c10d::ReduceOp& op);

// The library's number of a reduction, for as long as a call is issued: one with a factor is made for each communicator.
class Operation final {
 public:
  Operation(const Channel::Seat& seat, const Reduction& how);
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  ~Operation();

  // Of making it: where that failed there is none, and nothing may be issued.
  [[nodiscard]] setoResult_t result() const { return result_; }
  [[nodiscard]] setoRedOp_t get() const { return number_; }

 private:
  setoComm_t comm_;
  setoRedOp_t number_ = setoSum;
  setoResult_t result_ = setoSuccess;
  bool made_ = false;
};

}  // namespace seto::torch_backend
