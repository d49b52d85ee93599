#include "tests/software_gpu/driver/gpu_claim.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/software_gpu/driver/driver_error.h"

namespace seto::software_gpu::driver {

GpuClaim::GpuClaim(const std::string& folder, std::uint32_t gpu) {
  const std::string path = folder + "/gpu" + std::to_string(gpu);
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file_ < 0) throw DriverError(DriverCode::operating_system, path + ": " + std::strerror(errno));
  struct flock lock {};
  lock.l_type = F_WRLCK;
  if (::fcntl(file_, F_SETLK, &lock) == 0) return;
  ::close(file_);
  throw DriverError(DriverCode::device_unavailable, "the compute mode is exclusive, and another process uses the GPU");
}

GpuClaim::~GpuClaim() { ::close(file_); }

}  // namespace seto::software_gpu::driver
