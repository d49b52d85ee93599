// The interface between c10 and a device: the devices, streams and events of the stand-in.

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "tests/torch/software_gpu/devices.h"
#include "tests/torch/software_gpu/memory.h"

namespace seto::torch_tests {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::Stream;

constexpr int kHighPriority = -1;

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  static constexpr c10::DeviceType static_type = c10::kCUDA;

  Guard() = default;
  explicit Guard(c10::DeviceType /*type*/) {}

  c10::DeviceType type() const override { return c10::kCUDA; }
  Device exchangeDevice(Device device) const override {
    const Device before = getDevice();
    setDevice(device);
    return before;
  }
  Device getDevice() const override { return {c10::kCUDA, current_device()}; }
  void setDevice(Device device) const override {
    TORCH_CHECK(device.is_cuda() && device.index() < deviceCount(), device, " is not a device of the stand-in");
    if (device.has_index()) current_device() = device.index();
  }
  void uncheckedSetDevice(Device device) const noexcept override { current_device() = std::max<DeviceIndex>(device.index(), 0); }
  DeviceIndex deviceCount() const noexcept override { return static_cast<DeviceIndex>(device_count()); }

  Stream getStream(Device device) const override { return current_stream(index_of(device)); }
  Stream getDefaultStream(Device device) const override { return default_stream(index_of(device)); }
  Stream getNewStream(Device device, int priority) const override { return new_stream(index_of(device), priority); }
  Stream getStreamFromGlobalPool(Device device, bool high_priority) const override {
    return new_stream(index_of(device), high_priority ? kHighPriority : 0);
  }
  Stream exchangeStream(Stream stream) const override { return exchange_stream(stream); }
  void* getStreamNativeHandle(const Stream stream) const override { return handle_of(stream); }
  bool queryStream(const Stream& stream) const override {
    const cuda::Driver& on = driver_on(stream.device_index());
    return ended(on.stream_query.code(handle_of(stream)), on.stream_query);
  }
  void synchronizeStream(const Stream& stream) const override {
    must(driver_on(stream.device_index()).stream_synchronize(handle_of(stream)));
  }
  bool isStreamCapturing(const Stream& stream) const override {
    auto status = cuda::CaptureStatus::none;
    must(driver_on(stream.device_index()).stream_is_capturing(handle_of(stream), &status));
    return status != cuda::CaptureStatus::none;
  }

  void record(void** event, const Stream& stream, const DeviceIndex device, const c10::EventFlag /*flag*/) const override {
    TORCH_CHECK(device == -1 || device == stream.device_index(), "the event is of another device than the stream");
    const cuda::Driver& on = driver_on(stream.device_index());
    auto* handle = static_cast<cuda::Event>(*event);
    if (handle == nullptr) must(on.event_create(&handle, cuda::kEventDisableTiming));
    *event = handle;
    must(on.event_record(handle, handle_of(stream)));
  }
  void block(void* event, const Stream& stream) const override {
    if (event == nullptr) return;
    must(driver_on(stream.device_index()).stream_wait_event(handle_of(stream), static_cast<cuda::Event>(event), 0));
  }
  bool queryEvent(void* event) const override {
    if (event == nullptr) return true;
    return ended(driver().event_query.code(static_cast<cuda::Event>(event)), driver().event_query);
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) must(driver().event_synchronize(static_cast<cuda::Event>(event)));
  }
  void destroyEvent(void* event, const DeviceIndex device) const noexcept override {
    if (event != nullptr) (void)driver_on(device).event_destroy.code(static_cast<cuda::Event>(event));
  }
  void synchronizeDevice(const DeviceIndex device) const override { must(driver_on(device).ctx_synchronize()); }
  void recordDataPtrOnStream(const c10::DataPtr& memory, const Stream& stream) const override {
    record_use(memory.get_context(), stream);
  }

 private:
  static DeviceIndex index_of(Device device) { return device.has_index() ? device.index() : current_device(); }
  template <class Query>
  static bool ended(cuda::DriverCode code, const Query& query) {
    if (code == cuda::DriverCode::not_ready) return false;
    if (code != cuda::DriverCode::success) must(query.failed(code));
    return true;
  }
};

C10_REGISTER_GUARD_IMPL(CUDA, Guard)

}  // namespace
}  // namespace seto::torch_tests
