#include "src/core/gpu_direct/trial_memory.h"

namespace seto {
namespace {

// GPUs hand memory to other devices in pages of this size.
constexpr std::size_t kGpuPage = std::size_t{64} << 10;
constexpr std::size_t kPages = 2;

}  // namespace

Result<std::unique_ptr<TrialMemory>> TrialMemory::create(const cuda::Driver& driver, cuda::DeviceNumber gpu) {
  SETO_ASSIGN(const cuda::DirectAccess access, cuda::direct_access_of(driver, gpu));
  std::unique_ptr<TrialMemory> made(new TrialMemory(driver, access));
  SETO_TRY(driver.stream_create_with_priority(&made->stream_, cuda::kStreamNonBlocking, 0));
  cuda::DevicePointer memory = 0;
  SETO_TRY(driver.mem_alloc(&memory, (kPages + 1) * kGpuPage));
  made->address_ = (memory + kGpuPage - 1) / kGpuPage * kGpuPage;
  return made;
}

TrialMemory::~TrialMemory() {
  if (stream_ != nullptr) static_cast<void>(driver_.stream_destroy.code(stream_));
}

std::size_t TrialMemory::size() const { return kPages * kGpuPage; }

Result<Fd> TrialMemory::dma_buf() {
  if (!access_.dma_buf)
    return failure(Code::unavailable, "the CUDA driver offers none: it needs the open kernel modules of NVIDIA, and Linux 5.12");
  return cuda::export_dma_buf(driver_, address_, size());
}

Status TrialMemory::write(std::span<const std::byte> bytes) {
  SETO_TRY(driver_.memcpy_htod_async(address_, bytes.data(), bytes.size(), stream_));
  return driver_.stream_synchronize(stream_);
}

Status TrialMemory::read(std::span<std::byte> bytes) {
  SETO_TRY(driver_.memcpy_dtoh_async(bytes.data(), address_, bytes.size(), stream_));
  return driver_.stream_synchronize(stream_);
}

}  // namespace seto
