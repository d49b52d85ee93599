#include "src/core/device_memory/memory/device_allocations.h"

#include <fcntl.h>

#include <iterator>
#include <string>
#include <utility>

namespace seto {
namespace {

using cuda::DeviceAttribute;
using cuda::DriverCode;

bool has(const GpuContext& gpu, DeviceAttribute attribute) {
  int value = 0;
  return gpu.driver().device_get_attribute.code(&value, attribute, gpu.device()) == DriverCode::success && value != 0;
}

cuda::AllocationProperties properties_on(const GpuContext& gpu) {
  return {.handle_types = cuda::HandleType::posix_file_descriptor, .location = {.id = gpu.device()}};
}

void unmap(const DeviceAllocations::Allocation& allocation, bool is_mapped) {
  const cuda::Driver& driver = allocation.gpu->driver();
  if (is_mapped) static_cast<void>(driver.mem_unmap.code(allocation.begin, allocation.size));
  if (allocation.begin != 0) static_cast<void>(driver.mem_address_free.code(allocation.begin, allocation.size));
  static_cast<void>(driver.mem_release.code(allocation.handle));
}

}  // namespace

DeviceAllocations& DeviceAllocations::of_process() {
  static auto* const only = new DeviceAllocations;  // never destroyed, so that late calls find it
  return *only;
}

bool DeviceAllocations::gives_files(const GpuContext& gpu) {
  return has(gpu, DeviceAttribute::virtual_memory_management) && has(gpu, DeviceAttribute::posix_file_descriptor_handles);
}

std::vector<cuda::MemoryAccess> DeviceAllocations::readers_of(const GpuContext& gpu) {
  const cuda::Driver& driver = gpu.driver();
  std::vector<cuda::MemoryAccess> readers = {{.location = {.id = gpu.device()}}};
  int count = 0;
  if (driver.device_get_count.code(&count) != DriverCode::success) return readers;
  for (int device = 0; device < count; ++device) {
    int reaches = 0;
    if (device != gpu.device() && driver.device_can_access_peer.code(&reaches, device, gpu.device()) == DriverCode::success &&
        reaches != 0)
      readers.push_back({.location = {.id = device}});
  }
  return readers;
}

Result<cuda::MemoryHandle> DeviceAllocations::create(const GpuContext& gpu, std::size_t& size) {
  const cuda::Driver& driver = gpu.driver();
  cuda::MemoryHandle handle = 0;
  if (!gives_files(gpu)) return handle;
  const cuda::AllocationProperties properties = properties_on(gpu);
  std::size_t piece = 0;
  SETO_TRY(driver.mem_get_granularity(&piece, &properties, cuda::Granularity::minimum));
  const std::size_t whole = (size + piece - 1) / piece * piece;
  const DriverCode code = driver.mem_create.code(&handle, whole, &properties, 0);
  if (code == DriverCode::not_supported || code == DriverCode::not_permitted) return cuda::MemoryHandle{0};
  if (code != DriverCode::success) return driver.mem_create.failed(code);
  size = whole;
  return handle;
}

// The driver's manual does not say whether the descriptor is closed on exec.
Result<PrivateFd> DeviceAllocations::descriptor_of(const GpuContext& gpu, cuda::MemoryHandle handle) {
  int number = -1;
  SETO_TRY(gpu.driver().mem_export(&number, handle, cuda::HandleType::posix_file_descriptor, 0));
  Fd file(number);
  if (fcntl(file.get(), F_SETFD, FD_CLOEXEC) != 0)
    return system_failure(Code::unavailable, "a descriptor of memory of GPU %d cannot be used", gpu.device());
  return PrivateFd(std::move(file));
}

// Gives the memory an address, or releases it.
Status DeviceAllocations::map(Allocation& allocation) {
  const cuda::Driver& driver = allocation.gpu->driver();
  Status status = driver.mem_address_reserve(&allocation.begin, allocation.size, 0, 0, 0);
  if (status.ok()) status = driver.mem_map(allocation.begin, allocation.size, 0, allocation.handle, 0);
  const bool is_mapped = status.ok();
  const std::vector<cuda::MemoryAccess> readers = readers_of(*allocation.gpu);
  if (is_mapped) status = driver.mem_set_access(allocation.begin, allocation.size, readers.data(), readers.size());
  if (!status.ok()) unmap(allocation, is_mapped);
  return status;
}

Result<cuda::DevicePointer> DeviceAllocations::allocate(std::shared_ptr<GpuContext> gpu, std::size_t size) {
  const ContextScope scope(*gpu);
  SETO_TRY(scope.status());
  Allocation allocation{.size = size, .gpu = gpu};
  Result<cuda::MemoryHandle> created = create(*gpu, allocation.size);
  Status status = created.status();
  if (status.ok()) {
    allocation.handle = created.value();
    status = allocation.handle != 0 ? map(allocation) : gpu->driver().mem_alloc(&allocation.begin, size);
  }
  if (!status.ok())
    return failure(status.code(), "no %zu bytes of memory on GPU %d: %s", size, gpu->device(),
                   std::string(status.text()).c_str());
  const cuda::DevicePointer begin = allocation.begin;
  const std::lock_guard lock(mutex_);
  allocation.number = ++last_number_;
  allocations_.emplace(begin, std::move(allocation));
  return begin;
}

Status DeviceAllocations::release(cuda::DevicePointer begin) {
  Allocation allocation;
  {
    const std::lock_guard lock(mutex_);
    const auto found = allocations_.find(begin);
    if (found == allocations_.end())
      return failure(Code::invalid_argument, "ptr: %p is not from setoMemAlloc, or was freed", reinterpret_cast<void*>(begin));
    allocation = std::move(found->second);
    allocations_.erase(found);
  }
  const ContextScope scope(*allocation.gpu);
  SETO_TRY(scope.status());
  const cuda::Driver& driver = allocation.gpu->driver();
  const DriverCode code = driver.ctx_synchronize.code();
  if (code == DriverCode::stream_capture_unsupported) {
    const std::lock_guard lock(mutex_);
    allocations_.emplace(begin, std::move(allocation));
    return driver.ctx_synchronize.failed(code);
  }
  {
    const std::lock_guard lock(observers_mutex_);
    for (Observer* const one : observers_) one->released(allocation.number);
  }
  if (allocation.handle == 0) return driver.mem_free(begin);
  unmap(allocation, true);
  return {};
}

std::optional<DeviceAllocations::Allocation> DeviceAllocations::find(cuda::DevicePointer address) const {
  const std::lock_guard lock(mutex_);
  const auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return {};
  const Allocation& before = std::prev(after)->second;
  if (address >= before.begin + before.size) return {};
  return before;
}

bool DeviceAllocations::begins_at(cuda::DevicePointer address) const {
  const std::lock_guard lock(mutex_);
  return allocations_.contains(address);
}

void DeviceAllocations::add(Observer& observer) {
  const std::lock_guard lock(observers_mutex_);
  observers_.insert(&observer);
}

void DeviceAllocations::remove(Observer& observer) {
  const std::lock_guard lock(observers_mutex_);
  observers_.erase(&observer);
}

}  // namespace seto
