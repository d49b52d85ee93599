#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
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

  // A tensor that gets the same elements as another.
  void also(const at::Tensor& tensor, const at::Tensor& memory) { copies_.emplace_back(tensor.detach(), memory); }
  void keep(const at::Tensor& tensor) { kept_.push_back(tensor); }
  // To where the user wants them.
  void copy_back() const;

 private:
  std::vector<at::Tensor> kept_;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  // to, from
};

// Which bytes tensors lie in.
class Extents final {
 public:
  // False, and nothing is added: it shares bytes with one that is there, or may.
  [[nodiscard]] bool add(const at::Tensor& tensor);

 private:
  std::map<std::uintptr_t, std::uintptr_t> ends_;  // by begin
};

[[nodiscard]] bool share_bytes(const std::vector<at::Tensor>& tensors);

}  // namespace seto::torch_backend
