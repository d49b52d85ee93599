#pragma once

#include <ATen/ATen.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace seto::torch_backend {

// The tensors of a call. The library reads and writes dense memory that must stay in place until the call has ended; a user's
// tensor may not be dense, and may be dropped. Every tensor that is added here lives as long as the call, even if its Work is
// dropped.
class Operands final {
 public:
  // Memory with the elements of the tensor in row order: the tensor's own memory if it is dense, else a copy.
  at::Tensor in(const at::Tensor& tensor, at::ScalarType type);
  // Memory for results, which are copied to the tensor when the call has succeeded (unless it is the tensor's own memory).
  at::Tensor out(const at::Tensor& tensor, at::ScalarType type);
  // Memory that is read and written.
  at::Tensor in_out(const at::Tensor& tensor, at::ScalarType type);
  // Contiguous memory for the parts of several tensors, which are copied there now, or copied from there at the end.
  at::Tensor joined_in(const std::vector<at::Tensor>& tensors, at::ScalarType type);
  at::Tensor joined_out(const std::vector<at::Tensor>& tensors, at::ScalarType type);

  // Adds a tensor that receives the same elements as another one.
  void also(const at::Tensor& tensor, const at::Tensor& memory) { copies_.emplace_back(tensor.detach(), memory); }
  void keep(const at::Tensor& tensor) { kept_.push_back(tensor); }
  // Copies the results to the user's tensors.
  void copy_back() const;
  // Tells the allocator of the device that work of this stream uses the memory: it is not reused before that work has ended.
  void record_on(const c10::Stream& stream) const;

 private:
  std::vector<at::Tensor> kept_;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  // to, from
};

// The ranges of bytes that tensors occupy.
class Extents final {
 public:
  // Adds a tensor. Returns false and adds nothing if it overlaps, or may overlap, one that was added before.
  [[nodiscard]] bool add(const at::Tensor& tensor);

 private:
  std::map<std::uintptr_t, std::uintptr_t> ends_;  // by begin
};

[[nodiscard]] bool share_bytes(const std::vector<at::Tensor>& tensors);

}  // namespace seto::torch_backend
