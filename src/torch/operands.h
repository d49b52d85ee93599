#pragma once

#include <ATen/ATen.h>

#include <utility>
#include <vector>

namespace seto::torch_backend {

// The tensors of a call. What the library reads and writes must be dense and stay where it is until the call has ended; what a
// user gave may be neither. Every tensor that is named here lives as long as the call, whatever becomes of its Work.
class Operands final {
 public:
  // Memory with the elements of the tensor, row by row: its own if that is dense, else a copy.
  at::Tensor in(const at::Tensor& tensor, at::ScalarType type);
  // Memory that is to be written, whose elements become the tensor's when the call has ended well.
  at::Tensor out(const at::Tensor& tensor, at::ScalarType type);
  // Both.
  at::Tensor in_out(const at::Tensor& tensor, at::ScalarType type);
  // Memory for the parts of several tensors, one after another, which are copied there now, or taken from there at the end.
  at::Tensor joined_in(const std::vector<at::Tensor>& tensors, at::ScalarType type);
  at::Tensor joined_out(const std::vector<at::Tensor>& tensors, at::ScalarType type);

  void keep(const at::Tensor& tensor) { kept_.push_back(tensor); }
  // To where the user wants them.
  void copy_back() const;

 private:
  std::vector<at::Tensor> kept_;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  // to, from
};

}  // namespace seto::torch_backend
