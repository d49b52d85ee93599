#include "src/core/device_memory/memory/shared_memory.h"

#include <cstdint>
#include <utility>

#include "src/core/device_memory/memory/device_allocations.h"

namespace seto {

using cuda::DriverCode;
using cuda::HandleType;

Result<SharedMemory> SharedMemory::create(std::shared_ptr<GpuContext> gpu, std::size_t size) {
  SharedMemory made;
  made.size_ = size;
  SETO_ASSIGN(made.handle_, DeviceAllocations::create(*gpu, made.size_));
  made.gpu_ = std::move(gpu);
  if (made.handle_ == 0)
    return failure(Code::unavailable, "the driver gives no memory of GPU %d that processes share by file descriptor",
                   made.gpu_->device());
  return made;
}

Result<SharedMemory> SharedMemory::open(std::shared_ptr<GpuContext> gpu, const PrivateFd& file, std::size_t size) {
  SharedMemory made;
  made.size_ = size;
  void* const source = reinterpret_cast<void*>(static_cast<std::intptr_t>(file.get()));
  SETO_TRY(gpu->driver().mem_import(&made.handle_, source, HandleType::posix_file_descriptor));
  made.gpu_ = std::move(gpu);
  return made;
}

Result<PrivateFd> SharedMemory::descriptor() const { return DeviceAllocations::descriptor_of(*gpu_, handle_); }

Status SharedMemory::map(std::span<const cuda::MemoryAccess> users, DriverCode& answer) {
  const cuda::Driver& driver = gpu_->driver();
  answer = driver.mem_address_reserve.code(&address_, size_, 0, 0, 0);
  if (answer != DriverCode::success) {
    address_ = 0;
    return driver.mem_address_reserve.failed(answer);
  }
  answer = driver.mem_map.code(address_, size_, 0, handle_, 0);
  if (answer != DriverCode::success) return driver.mem_map.failed(answer);
  is_mapped_ = true;
  answer = driver.mem_set_access.code(address_, size_, users.data(), users.size());
  if (answer != DriverCode::success) return driver.mem_set_access.failed(answer);
  release_handle();
  return {};
}

void SharedMemory::release_handle() {
  if (handle_ != 0) static_cast<void>(gpu_->driver().mem_release.code(std::exchange(handle_, 0)));
}

SharedMemory::~SharedMemory() {
  if (gpu_ == nullptr) return;
  const cuda::Driver& driver = gpu_->driver();
  if (is_mapped_) static_cast<void>(driver.mem_unmap.code(address_, size_));
  if (address_ != 0) static_cast<void>(driver.mem_address_free.code(address_, size_));
  release_handle();
}

void SharedMemory::swap(SharedMemory& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(handle_, other.handle_);
  std::swap(address_, other.address_);
  std::swap(size_, other.size_);
  std::swap(is_mapped_, other.is_mapped_);
}

}  // namespace seto
