#pragma once

#include <c10/core/Stream.h>

#include "src/device/cuda/driver.h"

namespace seto::torch_tests {

// The stand-in for the driver, opened by the first call. A program finds it by LD_LIBRARY_PATH, as the library does.
[[nodiscard]] const cuda::Driver& driver();
// The same, and the context of the device becomes current in this thread, as the CUDA runtime does it in calls that need one.
[[nodiscard]] const cuda::Driver& driver_on(c10::DeviceIndex device);

// Throws c10::Error unless the call was a success.
void must(const Status& status);

[[nodiscard]] int device_count();
// The device and the streams that are current in this thread.
[[nodiscard]] c10::DeviceIndex& current_device();
[[nodiscard]] c10::Stream current_stream(c10::DeviceIndex device);
c10::Stream exchange_stream(const c10::Stream& stream);

[[nodiscard]] c10::Stream stream_of(c10::DeviceIndex device, c10::StreamId number);
[[nodiscard]] c10::Stream default_stream(c10::DeviceIndex device);
[[nodiscard]] c10::Stream new_stream(c10::DeviceIndex device, int priority);
[[nodiscard]] cuda::Stream handle_of(const c10::Stream& stream);

// Whether this process captures a graph: then no event may be queried and no memory may be allocated.
[[nodiscard]] bool& captures();

}  // namespace seto::torch_tests
