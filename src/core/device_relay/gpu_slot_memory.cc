#include "src/core/device_relay/gpu_slot_memory.h"

#include <algorithm>
#include <utility>

#include "src/base/thread.h"
#include "src/device/cuda/direct_access.h"

namespace seto {
namespace {

constexpr std::size_t kGpuPage = std::size_t{64} << 10;  // in which GPUs hand memory to other devices

}  // namespace

Status GpuSlotMemory::prepare() {
  SETO_TRY(allocate());
  SETO_ASSIGN(thread_, start_thread("seto-gpu-copy", [this] { run(); }));
  return name();
}

// As the memory of the trial was made. Memory of cuMemCreate would have to be mapped, which may wait for kernels.
Status GpuSlotMemory::allocate() {
  SETO_TRY(driver_.mem_alloc(&allocated_, size_ + kGpuPage));
  address_ = (allocated_ + kGpuPage - 1) / kGpuPage * kGpuPage;
  void* host = nullptr;
  SETO_TRY(driver_.mem_host_alloc(&host, size_, cuda::kHostAllocPortable));
  host_ = static_cast<std::byte*>(host);
  // Streams of the program usually have another priority. As far as is known, streams of different priorities share no hardware
  // queue, so copies do not wait behind work of the program that waits for a kernel of the library.
  int lowest = 0, highest = 0;
  SETO_TRY(driver_.ctx_get_stream_priority_range(&lowest, &highest));
  return driver_.stream_create_with_priority(&stream_, cuda::kStreamNonBlocking, highest);
}

Status GpuSlotMemory::name() {
  GpuMemory named{memory(), size_, -1, setup_.reach};
  const auto is_by_dma_buf = [](const GpuReach& one) { return one.way == GpuWay::dma_buf; };
  if (std::any_of(setup_.reach.begin(), setup_.reach.end(), is_by_dma_buf)) {
    SETO_ASSIGN(dma_buf_, cuda::export_dma_buf(driver_, address_, size_));
    named.dma_buf = dma_buf_.get();
  }
  name_ = NamedMemory::of_process().add_gpu(named);
  return {};
}

GpuSlotMemory::~GpuSlotMemory() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
  if (name_ != 0) NamedMemory::of_process().remove(name_);
  if (stream_ != nullptr) static_cast<void>(driver_.stream_destroy.code(stream_));
  if (host_ != nullptr) static_cast<void>(driver_.mem_free_host.code(host_));
  if (allocated_ != 0) static_cast<void>(driver_.mem_free.code(allocated_));
}

void GpuSlotMemory::copy(std::shared_ptr<SlotCopy> wanted) {
  {
    const std::lock_guard lock(mutex_);
    wanted_.push_back(std::move(wanted));
  }
  changed_.notify_one();
}

// The program may capture some stream meanwhile: without the mode, a wait of this thread would end that capture.
void GpuSlotMemory::run() {
  cuda::CaptureMode mode = cuda::CaptureMode::relaxed;
  Status ready = driver_.ctx_set_current(setup_.context);
  if (ready.ok()) ready = driver_.thread_exchange_capture_mode(&mode);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stops_ || !wanted_.empty(); });
    if (wanted_.empty()) return;
    const std::shared_ptr<SlotCopy> next = std::move(wanted_.front());
    wanted_.pop_front();
    lock.unlock();
    next->end(ready.ok() ? copy_now(*next) : ready);
    lock.lock();
  }
}

Status GpuSlotMemory::copy_now(const SlotCopy& wanted) {
  for (const SlotCopy::Part& part : wanted.parts())
    SETO_TRY(driver_.memcpy_dtoh_async(host_ + part.place, address_ + part.place, part.size, stream_));
  return driver_.stream_synchronize(stream_);
}

}  // namespace seto
