#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "src/base/fd.h"
#include "src/device/cuda/driver.h"
#include "src/engine/relay/gpu_slots.h"
#include "transports/named_memory.h"

namespace seto {

// Slots in memory of a GPU that RDMA devices read, and the thread that copies from them: a call of the driver may wait for other
// calls of the program, which the threads that move messages must not. No frame needs the memory when it ends. The context of the
// GPU is current when it is made and when it ends.
class GpuSlotMemory final : public GpuSlots {
 public:
  struct Setup {
    const cuda::Driver* driver = nullptr;
    cuda::DeviceNumber gpu = 0;
    cuda::Context context = nullptr;
    std::size_t size = 0;         // whole pages of 64 KiB
    std::vector<GpuReach> reach;  // of the devices of this host
  };
  explicit GpuSlotMemory(Setup setup) : setup_(std::move(setup)), driver_(*setup_.driver), size_(setup_.size) {}
  ~GpuSlotMemory() override;
  GpuSlotMemory(const GpuSlotMemory&) = delete;
  GpuSlotMemory& operator=(const GpuSlotMemory&) = delete;

  // Takes the memory, while kernels may run. Fails where there is none, or the driver does not hand it to devices. What was taken
  // until then goes with the object, because to free memory waits for kernels.
  Status prepare();

  [[nodiscard]] std::byte* memory() const override { return reinterpret_cast<std::byte*>(address_); }
  [[nodiscard]] std::size_t size() const override { return size_; }
  [[nodiscard]] const std::byte* host() const override { return host_; }
  void copy(std::shared_ptr<SlotCopy> wanted) override;

 private:
  Status allocate();
  Status name();
  void run();
  [[nodiscard]] Status copy_now(const SlotCopy& wanted);

  const Setup setup_;
  const cuda::Driver& driver_;
  const std::size_t size_;
  cuda::DevicePointer allocated_ = 0;
  cuda::DevicePointer address_ = 0;  // the first whole page there
  std::byte* host_ = nullptr;
  cuda::Stream stream_ = nullptr;
  Fd dma_buf_;
  NamedMemory::Name name_ = 0;  // 0: none
  std::mutex mutex_;            // of the following
  std::condition_variable changed_;
  std::deque<std::shared_ptr<SlotCopy>> wanted_;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace seto
