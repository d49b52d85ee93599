#pragma once

#include <memory>

#include "src/device/cuda/direct_access.h"
#include "transports/gpu_buffer.h"

namespace seto {

// Memory of a GPU for trials. The context of the GPU is current when it is made, and at each call. The memory stays until the
// process ends, because to free it would wait for kernels.
class TrialMemory final : public GpuBuffer {
 public:
  static Result<std::unique_ptr<TrialMemory>> create(const cuda::Driver& driver, cuda::DeviceNumber gpu);
  TrialMemory(const TrialMemory&) = delete;
  TrialMemory& operator=(const TrialMemory&) = delete;
  ~TrialMemory() override;

  [[nodiscard]] std::uint64_t address() const override { return address_; }
  [[nodiscard]] std::size_t size() const override;
  Result<Fd> dma_buf() override;
  Status write(std::span<const std::byte> bytes) override;
  Status read(std::span<std::byte> bytes) override;
  Status flush() override { return cuda::flush_direct_writes(driver_, access_.flush); }

 private:
  TrialMemory(const cuda::Driver& driver, cuda::DirectAccess access) : driver_(driver), access_(access) {}

  const cuda::Driver& driver_;
  const cuda::DirectAccess access_;
  cuda::Stream stream_ = nullptr;
  cuda::DevicePointer address_ = 0;
};

}  // namespace seto
