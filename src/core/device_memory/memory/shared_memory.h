#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "src/base/fork.h"
#include "src/core/device_memory/gpu_context.h"
#include "src/device/cuda/driver_memory.h"

namespace seto {

// Memory of a GPU that processes pass to each other as a file descriptor (cuMemCreate). It stays as long as any process has a
// handle of it or maps it, also after the process that made it has ended or was killed. The context is current in all calls.
class SharedMemory final {
 public:
  SharedMemory() = default;  // none
  SharedMemory(SharedMemory&& other) noexcept { swap(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    SharedMemory taken(std::move(other));
    swap(taken);
    return *this;
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  // Unmapping waits for kernels. Without an address nothing is waited for.
  ~SharedMemory();

  // At least so many bytes of the GPU, without an address.
  static Result<SharedMemory> create(std::shared_ptr<GpuContext> gpu, std::size_t size);
  // The memory of a descriptor of another process, which stays the caller's, without an address.
  static Result<SharedMemory> open(std::shared_ptr<GpuContext> gpu, const PrivateFd& file, std::size_t size);

  // For other processes: DeviceAllocations::descriptor_of.
  [[nodiscard]] Result<PrivateFd> descriptor() const;
  // Gives it an address at which these GPUs may read and write it. Afterwards no descriptor can be had any more. `answer`: of the
  // driver. After a failure it serves for nothing.
  Status map(std::span<const cuda::MemoryAccess> users, cuda::DriverCode& answer);

  // 0: none.
  [[nodiscard]] cuda::DevicePointer address() const { return is_mapped_ ? address_ : 0; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  void swap(SharedMemory& other) noexcept;
  void release_handle();

  std::shared_ptr<GpuContext> gpu_;
  cuda::MemoryHandle handle_ = 0;    // 0: none
  cuda::DevicePointer address_ = 0;  // 0: none is reserved
  std::size_t size_ = 0;
  bool is_mapped_ = false;
};

}  // namespace seto
