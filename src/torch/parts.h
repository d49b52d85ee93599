#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/torch/arguments.h"
#include "src/torch/operands.h"

namespace seto::torch_backend {

// Tensors anywhere in memory, described as parts of one buffer: counts and offsets from the first tensor, in elements of the
// library's type.
struct Parts {
  char* base = nullptr;
  std::vector<std::size_t> counts;
  std::vector<std::size_t> places;
};

// The parts in place if possible; otherwise (tensors not dense, of several types, or not a whole number of elements apart) in new
// memory.
[[nodiscard]] Parts parts_in(Operands& operands, const std::vector<at::Tensor>& tensors);
[[nodiscard]] Parts parts_out(Operands& operands, const std::vector<at::Tensor>& tensors);

// The number of the library's elements for each element of torch.
[[nodiscard]] inline std::size_t elements_of(const at::Tensor& tensor, std::size_t each) {
  return static_cast<std::size_t>(tensor.numel()) * each;
}

// Distributes the rows of a tensor over ranks, in elements; without splits, evenly. Throws ArgumentError if the splits do not add
// up.
[[nodiscard]] std::vector<std::size_t> split_counts(const Arguments& arguments, const at::Tensor& tensor,
                                                    const std::vector<std::int64_t>& splits, std::size_t ranks, std::size_t each);

}  // namespace seto::torch_backend
