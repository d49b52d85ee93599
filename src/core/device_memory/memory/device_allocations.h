#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "src/base/fork.h"
#include "src/core/device_memory/gpu_context.h"

namespace seto {

// Device memory that was allocated by this library for callers (setoMemAlloc): such that all GPUs of the process that have peer
// access can read it, and other processes can map it, as far as the driver allows. One of them for a process; any thread.
class DeviceAllocations final {
 public:
  struct Allocation {
    // No two of a process have the same, so memory is told apart from what was freed at its address before.
    std::uint64_t number = 0;
    cuda::DevicePointer begin = 0;
    std::size_t size = 0;           // bytes, of all: a whole number of the driver's pieces
    cuda::MemoryHandle handle = 0;  // 0: memory of cuMemAlloc, because the driver gives no file descriptors for memory
    std::shared_ptr<GpuContext> gpu{};
  };
  // One that has to know that memory ends. Called before the memory is unmapped, by the thread that frees it.
  class Observer {
   public:
    virtual ~Observer() = default;
    virtual void released(std::uint64_t number) = 0;
  };

  static DeviceAllocations& of_process();

  // The driver gives file descriptors for memory of this GPU.
  static bool gives_files(const GpuContext& gpu);
  // The GPUs of the process that can read memory of this one.
  static std::vector<cuda::MemoryAccess> readers_of(const GpuContext& gpu);
  // Memory of at least so many bytes that other processes can map, without an address here. 0: the driver gives no file
  // descriptors for memory. Its context is current.
  static Result<cuda::MemoryHandle> create(const GpuContext& gpu, std::size_t& size);

  // A descriptor of such memory, or of a multicast object, for other processes. It is closed in programs that this process
  // executes, and in its forked children.
  static Result<PrivateFd> descriptor_of(const GpuContext& gpu, cuda::MemoryHandle handle);

  Result<cuda::DevicePointer> allocate(std::shared_ptr<GpuContext> gpu, std::size_t size);
  // Waits for the kernels of the GPU, as cuMemFree does. Refused where the driver cannot wait because a stream is being captured.
  Status release(cuda::DevicePointer begin);
  // The allocation that holds an address.
  [[nodiscard]] std::optional<Allocation> find(cuda::DevicePointer address) const;
  [[nodiscard]] bool begins_at(cuda::DevicePointer address) const;

  void add(Observer& observer);
  void remove(Observer& observer);

 private:
  DeviceAllocations() = default;
  static Status map(Allocation& allocation);

  mutable std::mutex mutex_;  // of the tables
  std::map<cuda::DevicePointer, Allocation> allocations_;
  std::uint64_t last_number_ = 0;
  std::mutex observers_mutex_;  // also while they are called
  std::set<Observer*> observers_;
};

}  // namespace seto
