#pragma once

#include <ATen/ATen.h>
#include <c10/util/StringUtil.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/torch/errors.h"

namespace seto::torch_backend {

// What a call of torch is given, before anything is queued: all that one rank can know to be wrong throws ArgumentError, with the
// words by which code knows the complaints of torch's own backends, and then ours.
class Arguments final {
 public:
  using Tensors = std::vector<at::Tensor>;

  // "all_reduce", for the texts.
  explicit Arguments(const char* call) : call_(call) {}

  template <class... Words>
  void check(bool good, const Words&... words) const {
    if (!good) refuse(c10::str(words...));
  }
  [[noreturn]] void refuse(const std::string& why) const;

  // Dense, in host memory.
  void usable(const at::Tensor& tensor) const;
  void usable(const Tensors& tensors) const;
  // The one of a list that has no others. `kind`: "", "input ", "output ".
  [[nodiscard]] const at::Tensor& only(const Tensors& tensors, const char* kind = "") const;
  // The one list, of a tensor for each rank. `kind` and `capital`: "input" and "Input", or "output".
  [[nodiscard]] const Tensors& list_for_ranks(const std::vector<Tensors>& lists, std::size_t ranks, const char* kind,
                                              const char* capital) const;
  // The tensors that one rank gives to one call: some, of one layout, type and shape.
  void alike(const Tensors& tensors) const;
  void same_layout(const Tensors& tensors) const;
  void same_type(const at::Tensor& expected, const Tensors& tensors) const;
  void same_shape(const at::Tensor& expected, const Tensors& tensors) const;
  // As many elements, in whatever shape.
  void same_size(const at::Tensor& expected, const Tensors& tensors) const;
  void root(std::int64_t rank, std::size_t ranks) const;
  void root_tensor(std::int64_t index, std::size_t tensors) const;

 private:
  const char* call_;
};

}  // namespace seto::torch_backend
