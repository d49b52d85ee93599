#pragma once

#include <memory>
#include <string>

#include "src/base/result.h"
#include "src/device/cuda/driver_functions.h"

namespace seto::cuda {

inline constexpr const char* kDriverLibrary = "libcuda.so.1";
// The kernels come from this release of the toolkit, and older drivers do not load them.
inline constexpr int kOldestDriver = 13000;

// The CUDA driver, opened at run time. Its calls are members: `driver.mem_alloc(&pointer, size)`. All are safe from any thread;
// those that need a context use the one that is current in the calling thread.
class Driver final : public DriverFunctions {
 public:
  // Opens the library and finds all functions, but does not initialise CUDA: the caller does, by init(0). The library stays open
  // until the process ends. A test gives the path of another library; programs take the one that LD_LIBRARY_PATH names first.
  static Result<std::unique_ptr<const Driver>> open(const std::string& file = kDriverLibrary);

  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // The release of CUDA that the driver supports: 13000 is 13.0.
  [[nodiscard]] int version() const { return version_; }

 private:
  Driver() = default;

  DriverMessages messages_;
  int version_ = 0;
};

// 13020 -> "13.2"
[[nodiscard]] std::string version_text(int version);

}  // namespace seto::cuda
