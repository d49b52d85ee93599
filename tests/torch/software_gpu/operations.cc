// Operations of torch on the device: creation, views, fill_ and copy_. Others run on the CPU between copies, so they block.

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <cstring>

#include "tests/torch/software_gpu/devices.h"
#include "tests/torch/software_gpu/memory.h"

namespace seto::torch_tests {
namespace {

const c10::DispatchKeySet kKeys(c10::DispatchKey::CUDA);

c10::Device device_or_current(std::optional<at::Device> device) {
  return device && device->has_index() ? *device : c10::Device(c10::kCUDA, current_device());
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout> /*layout*/,
                 std::optional<at::Device> device, std::optional<bool> /*pin*/, std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard on(device_or_current(device));
  return at::detail::empty_generic(size, memory(), kKeys, c10::dtype_or_default(type), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> type,
                         std::optional<at::Layout> /*layout*/, std::optional<at::Device> device, std::optional<bool> /*pin*/) {
  const c10::DeviceGuard on(device_or_current(device));
  return at::detail::empty_strided_generic(size, stride, memory(), kKeys, c10::dtype_or_default(type));
}

at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride, std::optional<std::int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

cuda::DevicePointer address_of(const at::Tensor& tensor) { return reinterpret_cast<cuda::DevicePointer>(tensor.data_ptr()); }

// The number of bytes from the first element to the end of the last one.
std::size_t extent_of(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  std::int64_t elements = 1;
  for (std::int64_t dimension = 0; dimension < tensor.dim(); ++dimension)
    elements += (tensor.size(dimension) - 1) * tensor.stride(dimension);
  return static_cast<std::size_t>(elements) * tensor.element_size();
}

struct Queue {
  explicit Queue(const at::Tensor& tensor)
      : on(driver_on(tensor.get_device())), stream(handle_of(current_stream(tensor.get_device()))) {}
  const cuda::Driver& on;
  cuda::Stream stream;
};

// A tensor of the host with the same elements at the same strides.
at::Tensor on_host(const at::Tensor& tensor) {
  at::Tensor copy = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
  const Queue queue(tensor);
  must(queue.on.memcpy_dtoh_async(copy.data_ptr(), address_of(tensor), extent_of(tensor), queue.stream));
  must(queue.on.stream_synchronize(queue.stream));
  return copy;
}

void write_back(const at::Tensor& to, const at::Tensor& host) {
  const Queue queue(to);
  must(queue.on.memcpy_htod_async(address_of(to), host.data_ptr(), extent_of(to), queue.stream));
  must(queue.on.stream_synchronize(queue.stream));
}

at::Tensor& copy(at::Tensor& self, const at::Tensor& from, bool /*non_blocking*/) {
  if (self.numel() == 0) return self;
  const bool plain = self.is_cuda() && from.is_cuda() && self.get_device() == from.get_device() && self.is_contiguous() &&
                     from.is_contiguous() && self.sizes() == from.sizes() && self.scalar_type() == from.scalar_type() &&
                     self.is_conj() == from.is_conj() && self.is_neg() == from.is_neg();
  if (plain) {
    const Queue queue(self);
    must(queue.on.memcpy_dtod_async(address_of(self), address_of(from), extent_of(self), queue.stream));
    return self;
  }
  const at::Tensor source = from.is_cuda() ? on_host(from) : from;
  if (!self.is_cuda()) return self.copy_(source);
  const at::Tensor result = on_host(self);
  result.copy_(source);
  write_back(self, result);
  return self;
}

at::Tensor& fill(at::Tensor& self, const at::Scalar& value) {
  if (self.numel() == 0) return self;
  const at::Tensor one = at::scalar_tensor(value, self.options().device(at::kCPU));
  const Queue queue(self);
  const std::size_t bytes = extent_of(self);
  if (self.is_contiguous() && self.element_size() == 4) {
    unsigned bits = 0;
    std::memcpy(&bits, one.data_ptr(), sizeof bits);
    must(queue.on.memset_d32_async(address_of(self), bits, bytes / sizeof bits, queue.stream));
  } else if (self.is_contiguous() && self.element_size() == 1) {
    must(queue.on.memset_d8_async(address_of(self), *static_cast<const unsigned char*>(one.data_ptr()), bytes, queue.stream));
  } else {
    const at::Tensor host = on_host(self);
    host.fill_(value);
    write_back(self, host);
  }
  return self;
}

at::Tensor& zero(at::Tensor& self) { return fill(self, 0); }

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& to) {
  TORCH_CHECK(self.sizes() == to.sizes(), "software CUDA: an operation that changes the size of its result is not there");
  at::Tensor result = to;
  result.copy_(self);
  return result;
}

void on_cpu(const c10::OperatorHandle& operation, torch::jit::Stack* stack) { at::native::cpu_fallback(operation, stack); }

}  // namespace

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("as_strided", &as_strided);
  library.impl("view", &at::native::view);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("copy_", &copy);
  library.impl("fill_.Scalar", &fill);
  library.impl("zero_", &zero);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
}

TORCH_LIBRARY_IMPL(_, CUDA, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&on_cpu>()); }

}  // namespace seto::torch_tests
