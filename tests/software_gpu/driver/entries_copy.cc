// Copies, sets, and values in memory that streams write and wait for.
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/software_gpu/driver/driver_error.h"
#include "tests/software_gpu/driver/entry_table.h"

namespace seto::software_gpu::driver {
namespace {

using cuda::DevicePointer;

template <class T>
T* at(std::uint64_t address) {
  return reinterpret_cast<T*>(address);  // device addresses are those of the process
}

// A copy reads memory that the driver does not know at once, as the real driver may, and waits where it writes such memory.
void copy(StandIn& s, std::uint64_t target, std::uint64_t source, std::size_t bytes, cuda::Stream handle, const char* call) {
  Stream& stream = s.stream_of(handle);
  const Context& context = *stream.context;  // another thread may destroy the stream during the wait
  const bool source_is_known = s.memory().find(source) != nullptr, target_is_known = s.memory().find(target) != nullptr;
  if (source_is_known) s.memory().check(source, bytes, "the source");
  if (target_is_known) s.memory().check(target, bytes, "the target");
  std::shared_ptr<std::vector<char>> snapshot;
  if (!source_is_known && stream.capture == nullptr)
    snapshot = std::make_shared<std::vector<char>>(at<char>(source), at<char>(source) + bytes);
  const Done done = s.issue(
      stream, Task{.make = [=] {
        return Work{.start = [=] { std::memcpy(at<char>(target), snapshot ? snapshot->data() : at<char>(source), bytes); }};
      }});
  if (target_is_known || done == nullptr) return;
  s.scheduler().wait_for(call, {done});
  if (context.failed) throw DriverError(*context.failed);
}

void memcpy_async(StandIn& s, DevicePointer target, DevicePointer source, std::size_t bytes, cuda::Stream stream) {
  copy(s, target, source, bytes, stream, "cuMemcpyAsync");
}

void memcpy_dtod_async(StandIn& s, DevicePointer target, DevicePointer source, std::size_t bytes, cuda::Stream stream) {
  s.memory().check(target, bytes, "the target");
  s.memory().check(source, bytes, "the source");
  copy(s, target, source, bytes, stream, "cuMemcpyDtoDAsync");
}

void memcpy_htod_async(StandIn& s, DevicePointer target, const void* source, std::size_t bytes, cuda::Stream stream) {
  s.memory().check(target, bytes, "the target");
  copy(s, target, reinterpret_cast<std::uint64_t>(source), bytes, stream, "cuMemcpyHtoDAsync");
}

void memcpy_dtoh_async(StandIn& s, void* target, DevicePointer source, std::size_t bytes, cuda::Stream stream) {
  s.memory().check(source, bytes, "the source");
  copy(s, reinterpret_cast<std::uint64_t>(target), source, bytes, stream, "cuMemcpyDtoHAsync");
}

// A single value is one access: threads of the host may look at it meanwhile.
template <class T>
void fill(StandIn& s, DevicePointer target, T value, std::size_t count, cuda::Stream handle) {
  Stream& stream = s.stream_of(handle);
  s.memory().check(target, count * sizeof(T), "the target");
  if (target % sizeof(T) != 0) throw DriverError(DriverCode::invalid_value, "the target is not aligned");
  s.issue(stream, Task{.make = [=] {
            return Work{.start = [=] {
              if (count == 1)
                __atomic_store_n(at<T>(target), value, __ATOMIC_RELEASE);
              else
                std::fill_n(at<T>(target), count, value);
            }};
          }});
}

void memset_d8_async(StandIn& s, DevicePointer target, unsigned char value, std::size_t count, cuda::Stream stream) {
  fill<unsigned char>(s, target, value, count, stream);
}

void memset_d32_async(StandIn& s, DevicePointer target, unsigned value, std::size_t count, cuda::Stream stream) {
  fill<unsigned>(s, target, value, count, stream);
}

template <class T>
void check_value(StandIn& s, DevicePointer address) {
  s.memory().check(address, sizeof(T), "the value");
  if (address % sizeof(T) != 0) throw DriverError(DriverCode::invalid_value, "the value is not aligned");
}

template <class T>
void wait_value(StandIn& s, cuda::Stream handle, DevicePointer address, T value, unsigned flags) {
  if (flags != cuda::kWaitGreaterOrEqual && flags != cuda::kWaitEqual)
    throw DriverError(DriverCode::not_supported, "the stand-in compares by >= and == only");
  Stream& stream = s.stream_of(handle);
  check_value<T>(s, address);
  // ">=" is that of a counter that may wrap around.
  const auto reached = [=] {
    const T now = __atomic_load_n(at<T>(address), __ATOMIC_ACQUIRE);
    return flags == cuda::kWaitEqual ? now == value : static_cast<std::make_signed_t<T>>(now - value) >= 0;
  };
  s.issue(stream, Task{.make = [=] { return Work{.ended = reached}; }});
}

template <class T>
void write_value(StandIn& s, cuda::Stream handle, DevicePointer address, T value, unsigned) {
  Stream& stream = s.stream_of(handle);
  check_value<T>(s, address);
  s.issue(stream,
          Task{.make = [=] { return Work{.start = [=] { __atomic_store_n(at<T>(address), value, __ATOMIC_RELEASE); }}; }});
}

}  // namespace

void add_copy_entries(EntryTable& table, const cuda::DriverFunctions& d) {
  table.add<memcpy_async>(d.memcpy_async);
  table.add<memcpy_dtod_async>(d.memcpy_dtod_async);
  table.add<memcpy_htod_async>(d.memcpy_htod_async);
  table.add<memcpy_dtoh_async>(d.memcpy_dtoh_async);
  table.add<memset_d8_async>(d.memset_d8_async);
  table.add<memset_d32_async>(d.memset_d32_async);
  table.add<wait_value<std::uint32_t>>(d.stream_wait_value32);
  table.add<wait_value<std::uint64_t>>(d.stream_wait_value64);
  table.add<write_value<std::uint32_t>>(d.stream_write_value32);
  table.add<write_value<std::uint64_t>>(d.stream_write_value64);
}

}  // namespace seto::software_gpu::driver
