#pragma once

#include <ATen/ATen.h>
#include <c10/util/StringUtil.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/torch/errors.h"

namespace seto::torch_backend {

// The arguments of a call of torch, checked before anything is queued. Every mistake that one rank can detect alone throws
// ArgumentError. Its text starts with the phrase of torch's own backends, which programs match, and continues with the text of
// this library.
class Arguments final {
 public:
  using Tensors = std::vector<at::Tensor>;

  // The name of the call for error texts, such as "all_reduce".
  explicit Arguments(const char* call) : call_(call) {}

  template <class... Words>
  void check(bool good, const Words&... words) const {
    if (!good) refuse(c10::str(words...));
  }
  [[noreturn]] void refuse(const std::string& why) const;

  // Checks that the tensor is dense, and in host memory or on a CUDA device.
  void usable(const at::Tensor& tensor) const;
  void usable(const Tensors& tensors) const;
  // Checks that all tensors of a call are on one device.
  void same_device(c10::Device expected, const Tensors& tensors) const;
  // The only tensor of a list. `kind` is "", "input " or "output ".
  [[nodiscard]] const at::Tensor& only(const Tensors& tensors, const char* kind = "") const;
  // The only list, with one tensor for each rank. `kind` and `capital` are "input" and "Input", or "output" and "Output".
  [[nodiscard]] const Tensors& list_for_ranks(const std::vector<Tensors>& lists, std::size_t ranks, const char* kind,
                                              const char* capital) const;
  // Checks the tensors that one rank passes to one call: at least one, all of one layout, type and shape.
  void alike(const Tensors& tensors) const;
  void same_layout(const Tensors& tensors) const;
  void same_type(const at::Tensor& expected, const Tensors& tensors) const;
  void same_shape(const at::Tensor& expected, const Tensors& tensors) const;
  // Checks that both have the same number of elements, in any shape.
  void same_size(const at::Tensor& expected, const Tensors& tensors) const;
  void root(std::int64_t rank, std::size_t ranks) const;
  void root_tensor(std::int64_t index, std::size_t tensors) const;

 private:
  const char* call_;
};

}  // namespace seto::torch_backend
