#include "src/torch/operands.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace seto::torch_backend {

at::Tensor Operands::in(const at::Tensor& tensor, at::ScalarType type) {
  at::NoGradGuard no_grad;
  return kept_.emplace_back(tensor.detach().to(type).contiguous().resolve_conj().resolve_neg());
}

at::Tensor Operands::out(const at::Tensor& tensor, at::ScalarType type) {
  at::NoGradGuard no_grad;
  const at::Tensor target = tensor.detach();
  const bool as_it_is = target.is_contiguous() && target.scalar_type() == type && !target.is_conj() && !target.is_neg();
  if (as_it_is) return kept_.emplace_back(target);
  const at::Tensor memory = at::empty(target.sizes(), target.options().dtype(type).memory_format(at::MemoryFormat::Contiguous));
  copies_.emplace_back(target, memory);
  return memory;
}

at::Tensor Operands::in_out(const at::Tensor& tensor, at::ScalarType type) {
  at::NoGradGuard no_grad;
  const at::Tensor memory = out(tensor, type);
  if (!memory.is_alias_of(tensor)) memory.copy_(tensor);
  return memory;
}

at::Tensor Operands::joined_in(const std::vector<at::Tensor>& tensors, at::ScalarType type) {
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> flat;
  flat.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) flat.push_back(tensor.detach().to(type).reshape(-1));
  return kept_.emplace_back(at::cat(flat));
}

at::Tensor Operands::joined_out(const std::vector<at::Tensor>& tensors, at::ScalarType type) {
  at::NoGradGuard no_grad;
  std::int64_t elements = 0;
  for (const at::Tensor& tensor : tensors) elements += tensor.numel();
  at::Tensor memory = at::empty({elements}, tensors.front().options().dtype(type));
  std::int64_t first = 0;
  for (const at::Tensor& tensor : tensors) {
    copies_.emplace_back(tensor.detach(), memory.narrow(0, first, tensor.numel()).view(tensor.sizes()));
    first += tensor.numel();
  }
  return kept_.emplace_back(memory);
}

bool Extents::add(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return true;
  std::int64_t elements = 1;
  for (std::int64_t dimension = 0; dimension < tensor.dim(); ++dimension)
    elements += (tensor.size(dimension) - 1) * tensor.stride(dimension);
  const auto begin = reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr());
  const std::uintptr_t end = begin + static_cast<std::uintptr_t>(elements) * tensor.element_size();
  const auto after = ends_.lower_bound(end);  // all ranges before it begin before this one ends
  if (after != ends_.begin() && std::prev(after)->second > begin) return false;
  ends_.emplace(begin, end);
  return true;
}

bool share_bytes(const std::vector<at::Tensor>& tensors) {
  Extents extents;
  return !std::all_of(tensors.begin(), tensors.end(), [&](const at::Tensor& tensor) { return extents.add(tensor); });
}

void Operands::record_on(const c10::Stream& stream) const {
  const c10::impl::VirtualGuardImpl device(stream.device_type());
  const auto record = [&](const at::Tensor& tensor) { device.recordDataPtrOnStream(tensor.storage().data_ptr(), stream); };
  for (const at::Tensor& tensor : kept_) record(tensor);
  for (const auto& [to, from] : copies_) {
    record(to);
    record(from);
  }
}

void Operands::copy_back() const {
  at::NoGradGuard no_grad;
  for (const auto& [to, from] : copies_) to.copy_(from);
}

}  // namespace seto::torch_backend
