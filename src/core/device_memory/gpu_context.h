#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/base/types.h"
#include "src/core/choice/gpu_paths.h"
#include "src/core/device_memory/launch_order.h"
#include "src/device/cuda/driver.h"
#include "src/device/cuda/kernel_module.h"

namespace seto {

inline constexpr std::uint32_t kWarp = 32;  // threads

// The driver of this process, opened by the first call. It stays open until the process ends.
Result<const cuda::Driver*> process_driver();
// The driver if process_driver() has opened it, else null. Costs one load.
[[nodiscard]] const cuda::Driver* opened_driver();
// The program has loaded the driver. It is not loaded here: jobs without GPUs shall not pay for it.
[[nodiscard]] bool driver_is_loaded();

// The primary context of a GPU, kept alive, with the library's kernels. All communicators of a process on one GPU share it, so
// that kernels are loaded once, before any of them waits for a peer.
class GpuContext final {
 public:
  // The GPU whose context is current in the calling thread.
  static Result<std::shared_ptr<GpuContext>> of_thread();
  static Result<std::shared_ptr<GpuContext>> of_device(int device);
  ~GpuContext();
  GpuContext(const GpuContext&) = delete;
  GpuContext& operator=(const GpuContext&) = delete;

  // Loads the kernels of all types, unless that was done. `rank`: for the text of a failure.
  Status load_kernels(Rank rank, Deadline until);
  // After load_kernels(): the kernel of a type, or the one that also encodes.
  [[nodiscard]] cuda::Kernel kernel(DataType type) const { return plain_[static_cast<std::size_t>(type)]; }
  [[nodiscard]] cuda::Kernel coded_kernel(DataType type) const { return coded_[static_cast<std::size_t>(type)]; }
  [[nodiscard]] cuda::Kernel transfer_kernel() const { return transfers_; }
  // Only for GPUs that have NVLink multicast.
  [[nodiscard]] cuda::Kernel multicast_kernel() const { return multicast_; }
  // Blocks of so many threads that the GPU holds at once, of the kernel of which it holds the fewest.
  Result<int> resident_blocks(int threads) const;
  // Threads of a block that every kernel can have.
  [[nodiscard]] int most_threads() const { return most_threads_; }

  [[nodiscard]] const cuda::Driver& driver() const { return driver_; }
  [[nodiscard]] cuda::Context handle() const { return handle_; }
  [[nodiscard]] int device() const { return device_; }
  [[nodiscard]] const cuda::DeviceUuid& uuid() const { return uuid_; }
  [[nodiscard]] LaunchOrder& launch_order() { return launch_order_; }
  // Memory of cuMemAlloc that no call uses, until the end: all communicators of the process try with it whether other processes
  // map such memory.
  Result<cuda::DevicePointer> plain_memory();
  static constexpr std::size_t kPlainMemory = 4096;
  // Its GPU links and its PCI path. The first call asks NVML and sysfs about this GPU alone, for 1 s at most.
  const GpuPaths& paths(Deadline until);

 private:
  GpuContext(const cuda::Driver& driver, int device) : driver_(driver), device_(device) {}
  Status open();
  Status load_kernels();
  Result<cuda::Kernel> find(const cuda::KernelModules& modules, const std::string& name);

  const cuda::Driver& driver_;
  const int device_;
  cuda::Context handle_ = nullptr;  // null: not retained
  cuda::DeviceUuid uuid_;
  LaunchOrder launch_order_;
  std::mutex mutex_;
  cuda::DevicePointer plain_memory_ = 0;  // 0: none was asked for
  std::unique_ptr<const cuda::KernelModules> modules_;
  std::array<cuda::Kernel, kDataTypeCount> plain_{};
  std::array<cuda::Kernel, kDataTypeCount> coded_{};  // null: no codec takes this type
  cuda::Kernel transfers_ = nullptr, multicast_ = nullptr;
  int most_threads_ = 0;
  std::once_flag asked_paths_;
  GpuPaths paths_;
};

// "GPU-1b2c...", as nvidia-smi writes it.
[[nodiscard]] std::string text_of(const cuda::DeviceUuid& uuid);

// Makes a context current until the end of a scope. Meanwhile the thread may make calls that could wait, although some stream of
// the process is being captured: the library's own streams are never captured.
class ContextScope final {
 public:
  explicit ContextScope(const GpuContext& gpu);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

  [[nodiscard]] const Status& status() const { return status_; }

 private:
  const cuda::Driver& driver_;
  cuda::Context before_ = nullptr;
  cuda::CaptureMode mode_ = cuda::CaptureMode::relaxed;  // of the thread before, once the scope has begun
  Status status_;
};

}  // namespace seto
