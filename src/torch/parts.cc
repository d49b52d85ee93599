#include "src/torch/parts.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "src/torch/types.h"

namespace seto::torch_backend {
namespace {

// Empty if the tensors are not dense, have different types, or are not a whole number of elements apart.
std::optional<Parts> as_they_lie(const std::vector<at::Tensor>& tensors) {
  const at::ScalarType type = tensors.front().scalar_type();
  const Moved as = moved_as(type);
  const std::size_t element = c10::elementSize(type) / as.elements;
  auto lowest = std::numeric_limits<std::uintptr_t>::max();
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.is_contiguous() || tensor.scalar_type() != type || tensor.is_conj() || tensor.is_neg()) return {};
    if (tensor.numel() > 0) lowest = std::min(lowest, reinterpret_cast<std::uintptr_t>(tensor.data_ptr()));
  }
  Parts parts;
  if (lowest != std::numeric_limits<std::uintptr_t>::max()) parts.base = reinterpret_cast<char*>(lowest);
  for (const at::Tensor& tensor : tensors) {
    const std::size_t away = tensor.numel() == 0 ? 0 : reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) - lowest;
    if (away % element != 0) return {};
    parts.counts.push_back(elements_of(tensor, as.elements));
    parts.places.push_back(away / element);
  }
  return parts;
}

// If the tensors cannot be described in place, the parts get memory of their own.
Parts in_memory(const std::vector<at::Tensor>& tensors, const at::Tensor& memory) {
  const std::size_t each = moved_as(memory.scalar_type()).elements;
  Parts parts;
  parts.base = static_cast<char*>(memory.data_ptr());
  std::size_t place = 0;
  for (const at::Tensor& tensor : tensors) {
    parts.counts.push_back(elements_of(tensor, each));
    parts.places.push_back(place);
    place += parts.counts.back();
  }
  return parts;
}

}  // namespace

Parts parts_in(Operands& operands, const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) operands.keep(tensor);
  if (auto parts = as_they_lie(tensors)) return *std::move(parts);
  return in_memory(tensors, operands.joined_in(tensors, tensors.front().scalar_type()));
}

// Tensors that overlap are written in order at the end.
Parts parts_out(Operands& operands, const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) operands.keep(tensor);
  if (!share_bytes(tensors))
    if (auto parts = as_they_lie(tensors)) return *std::move(parts);
  return in_memory(tensors, operands.joined_out(tensors, tensors.front().scalar_type()));
}

std::vector<std::size_t> split_counts(const Arguments& arguments, const at::Tensor& tensor,
                                      const std::vector<std::int64_t>& splits, std::size_t ranks, std::size_t each) {
  std::vector<std::size_t> counts;
  const std::int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  const std::size_t row = rows == 0 ? 0 : elements_of(tensor, each) / static_cast<std::size_t>(rows);
  if (splits.empty()) {
    arguments.check(static_cast<std::size_t>(rows) % ranks == 0, rows, " rows do not divide among ", ranks,
                    " ranks; give the splits");
    counts.assign(ranks, static_cast<std::size_t>(rows) / ranks * row);
    return counts;
  }
  std::int64_t sum = 0;
  for (const std::int64_t split : splits) {
    arguments.check(split >= 0, "a split of ", split, " rows");
    sum += split;
    counts.push_back(static_cast<std::size_t>(split) * row);
  }
  arguments.check(splits.size() == ranks && sum == rows, splits.size(), " splits of ", sum, " rows together, for ", ranks,
                  " ranks and ", rows, " rows");
  return counts;
}

}  // namespace seto::torch_backend
