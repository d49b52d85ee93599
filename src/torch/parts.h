#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/torch/arguments.h"
#include "src/torch/operands.h"

namespace seto::torch_backend {

// Tensors anywhere in memory as parts of one buffer, of which they are the only ones: counts and places in elements of the
// library's type, from the first.
struct Parts {
  char* base = nullptr;
  std::vector<std::size_t> counts;
  std::vector<std::size_t> places;
};

// Where they lie, if that can be said; else (not dense, of several types, no whole number of elements apart) in memory of their
// own.
[[nodiscard]] Parts parts_in(Operands& operands, const std::vector<at::Tensor>& tensors);
[[nodiscard]] Parts parts_out(Operands& operands, const std::vector<at::Tensor>& tensors);

// Of the library's elements for each of torch's.
[[nodiscard]] inline std::size_t elements_of(const at::Tensor& tensor, std::size_t each) {
  return static_cast<std::size_t>(tensor.numel()) * each;
}

// The rows of a tensor among ranks, in elements: evenly without splits. Throws ArgumentError where they do not add up.
[[nodiscard]] std::vector<std::size_t> split_counts(const Arguments& arguments, const at::Tensor& tensor,
                                                    const std::vector<std::int64_t>& splits, std::size_t ranks, std::size_t each);

}  // namespace seto::torch_backend
