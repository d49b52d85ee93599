#include "src/torch/arguments.h"

#include <string>

namespace seto::torch_backend {

void Arguments::refuse(const std::string& why) const {
  throw ArgumentError({call_, __FILE__, __LINE__}, "seto: " + std::string(call_) + ": " + why);
}

void Arguments::usable(const at::Tensor& tensor) const {
  check(tensor.layout() == at::kStrided, "only supports dense tensors, but this one is ", tensor.layout());
  check(tensor.device().is_cpu() || tensor.device().is_cuda(),
        "only supports tensors in host memory (CPU) and on CUDA devices, but this one is on ", tensor.device());
}

void Arguments::usable(const Tensors& tensors) const {
  for (const at::Tensor& tensor : tensors) usable(tensor);
}

void Arguments::same_device(c10::Device expected, const Tensors& tensors) const {
  for (std::size_t index = 0; index < tensors.size(); ++index)
    check(tensors[index].device() == expected, "invalid tensor device at index ", index, " (expected ", expected, ", got ",
          tensors[index].device(), ")");
}

const at::Tensor& Arguments::only(const Tensors& tensors, const char* kind) const {
  check(tensors.size() == 1, "requires a single-element ", kind, "tensor list, not one of ", tensors.size());
  usable(tensors.front());
  return tensors.front();
}

const Arguments::Tensors& Arguments::list_for_ranks(const std::vector<Tensors>& lists, std::size_t ranks, const char* kind,
                                                    const char* capital) const {
  check(lists.size() == 1, "requires a single-element ", kind, " list containing a list with ", ranks,
        " tensors, one for each rank");
  const std::size_t size = lists.front().size();
  check(size == ranks, "Incorrect ", kind, " list size ", size, ". ", capital, " list size should be ", ranks,
        ", one tensor for each rank");
  usable(lists.front());
  return lists.front();
}

void Arguments::alike(const Tensors& tensors) const {
  same_layout(tensors);
  same_type(tensors.front(), tensors);
  same_shape(tensors.front(), tensors);
}

void Arguments::same_layout(const Tensors& tensors) const {
  check(!tensors.empty(), "requires non-empty tensor list");
  const at::Layout layout = tensors.front().layout();
  for (std::size_t index = 1; index < tensors.size(); ++index)
    check(tensors[index].layout() == layout, "invalid tensor layout at index ", index, " (expected ", layout, ", got ",
          tensors[index].layout(), ")");
}

void Arguments::same_type(const at::Tensor& expected, const Tensors& tensors) const {
  for (std::size_t index = 0; index < tensors.size(); ++index)
    check(tensors[index].scalar_type() == expected.scalar_type(), "invalid tensor type at index ", index, " (expected ",
          expected.scalar_type(), ", got ", tensors[index].scalar_type(), ")");
}

void Arguments::same_shape(const at::Tensor& expected, const Tensors& tensors) const {
  for (std::size_t index = 0; index < tensors.size(); ++index)
    check(tensors[index].sizes() == expected.sizes(), "invalid tensor size at index ", index, " (expected ", expected.sizes(),
          ", got ", tensors[index].sizes(), ")");
}

void Arguments::same_size(const at::Tensor& expected, const Tensors& tensors) const {
  for (std::size_t index = 0; index < tensors.size(); ++index)
    check(tensors[index].numel() == expected.numel(), "invalid tensor size at index ", index, " (expected ", expected.sizes(),
          ", got ", tensors[index].sizes(), ")");
}

void Arguments::root(std::int64_t rank, std::size_t ranks) const {
  check(rank >= 0 && static_cast<std::size_t>(rank) < ranks, "invalid root rank: ", rank, " is not one of ", ranks);
}

void Arguments::root_tensor(std::int64_t index, std::size_t tensors) const {
  check(index >= 0 && static_cast<std::size_t>(index) < tensors, "invalid root tensor: ", index, " is not one of ", tensors);
}

}  // namespace seto::torch_backend
