// Tells torch that there is an accelerator, which its autograd asks for before a backward pass, and gives DDP a clock for it.

#include <ATen/detail/CUDAHooksInterface.h>

#include <torch/csrc/distributed/c10d/reducer_timer.hpp>
#include <utility>

#include "tests/torch/software_gpu/devices.h"

namespace seto::torch_tests {

struct CUDAHooks final : at::CUDAHooksInterface {
  explicit CUDAHooks(at::CUDAHooksArgs /*arguments*/) {}
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasPrimaryContext(at::DeviceIndex /*device*/) const override { return true; }
  at::DeviceIndex deviceCount() const override { return static_cast<at::DeviceIndex>(device_count()); }
  at::DeviceIndex getCurrentDevice() const override { return torch_tests::current_device(); }
  void setCurrentDevice(at::DeviceIndex device) const override { torch_tests::current_device() = device; }
  at::DeviceIndex exchangeDevice(at::DeviceIndex device) const override {
    return std::exchange(torch_tests::current_device(), device);
  }
  at::DeviceIndex maybeExchangeDevice(at::DeviceIndex device) const override {
    return device < 0 ? torch_tests::current_device() : exchangeDevice(device);
  }
};

// DDP does not work without one. The time of the host serves.
class DeviceTimer final : public c10d::Timer {
 public:
  explicit DeviceTimer(c10::Device /*device*/) {}
  std::optional<std::int64_t> measureDifference(Event start, Event end) override {
    const std::optional<std::int64_t> began = getTimestamp(start), ended = getTimestamp(end);
    if (!began || !ended) return std::nullopt;
    return *ended - *began;
  }
};

}  // namespace seto::torch_tests

namespace c10d {
using seto::torch_tests::DeviceTimer;
C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::kCUDA, DeviceTimer)
}  // namespace c10d

namespace at {
using seto::torch_tests::CUDAHooks;
REGISTER_CUDA_HOOKS(CUDAHooks)  // torch looks for this name
}  // namespace at
