#pragma once

#include <cstdint>
#include <string>

namespace seto::software_gpu::driver {

// The right of one process to use a GPU whose compute mode is exclusive: a lock of a file in a folder that processes share. It
// ends with this object, or with the process, however that ends. A forked child does not have it.
class GpuClaim final {
 public:
  // Throws the error of the driver if another process has it.
  GpuClaim(const std::string& folder, std::uint32_t gpu);
  ~GpuClaim();
  GpuClaim(const GpuClaim&) = delete;
  GpuClaim& operator=(const GpuClaim&) = delete;

 private:
  int file_ = -1;
};

}  // namespace seto::software_gpu::driver
