#include "tests/torch/software_gpu/devices.h"

#include <c10/util/Exception.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>

namespace seto::torch_tests {
namespace {

// The streams by number; number 0 of each device is its default stream. They live as long as the process.
struct Streams {
  std::mutex mutex;
  std::map<c10::DeviceIndex, cuda::Context> contexts;
  std::deque<cuda::Stream> made{nullptr};
};

Streams& streams() {
  static auto* const only = new Streams;
  return *only;
}

std::map<c10::DeviceIndex, c10::StreamId>& current_streams() {
  static thread_local std::map<c10::DeviceIndex, c10::StreamId> only;
  return only;
}

}  // namespace

c10::Stream stream_of(c10::DeviceIndex device, c10::StreamId number) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kCUDA, device), number);
}

void must(const Status& status) { TORCH_CHECK(status.ok(), "software CUDA: ", std::string(status.text())); }

const cuda::Driver& driver() {
  static const cuda::Driver* const only = [] {
    auto opened = cuda::Driver::open();
    must(opened.ok() ? Status() : opened.status());
    must(opened.value()->init(0));
    return std::move(opened).value().release();
  }();
  return *only;
}

const cuda::Driver& driver_on(c10::DeviceIndex device) {
  Streams& all = streams();
  const std::lock_guard lock(all.mutex);
  cuda::Context& context = all.contexts[device];
  if (context == nullptr) must(driver().device_primary_ctx_retain(&context, device));
  must(driver().ctx_set_current(context));
  return driver();
}

int device_count() {
  int count = 0;
  must(driver().device_get_count(&count));
  return count;
}

c10::DeviceIndex& current_device() {
  static thread_local c10::DeviceIndex only = 0;
  return only;
}

c10::Stream current_stream(c10::DeviceIndex device) { return stream_of(device, current_streams()[device]); }

c10::Stream exchange_stream(const c10::Stream& stream) {
  const c10::Stream before = current_stream(stream.device_index());
  current_streams()[stream.device_index()] = stream.id();
  return before;
}

c10::Stream default_stream(c10::DeviceIndex device) { return stream_of(device, 0); }

c10::Stream new_stream(c10::DeviceIndex device, int priority) {
  cuda::Stream made = nullptr;
  must(driver_on(device).stream_create_with_priority(&made, cuda::kStreamNonBlocking, priority));
  Streams& all = streams();
  const std::lock_guard lock(all.mutex);
  all.made.push_back(made);
  return stream_of(device, static_cast<c10::StreamId>(all.made.size()) - 1);
}

cuda::Stream handle_of(const c10::Stream& stream) {
  Streams& all = streams();
  const std::lock_guard lock(all.mutex);
  return all.made.at(static_cast<std::size_t>(stream.id()));
}

bool& captures() {
  static bool only = false;
  return only;
}

}  // namespace seto::torch_tests
