#pragma once

#include <stdexcept>
#include <string>

#include "src/device/cuda/driver_code.h"
#include "tests/software_gpu/fault.h"

namespace seto::software_gpu::driver {

using cuda::DriverCode;

// The result of a call that fails. The text explains it beyond what the real driver says; cuGetErrorString returns it too.
class DriverError final : public std::runtime_error {
 public:
  explicit DriverError(DriverCode code, const std::string& text = {}) : std::runtime_error(text), code_(code) {}
  [[nodiscard]] DriverCode code() const { return code_; }

 private:
  DriverCode code_;
};

// The error that the real driver gives for a fault of a kernel.
[[nodiscard]] inline DriverCode code_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::out_of_bounds:
      return DriverCode::illegal_address;
    case FaultKind::misaligned:
      return DriverCode::misaligned_address;
    case FaultKind::syntax:
    case FaultKind::unknown_instruction:
      return DriverCode::invalid_ptx;
    case FaultKind::hang:
      return DriverCode::launch_timeout;
    default:
      return DriverCode::launch_failed;
  }
}

// The name of an error as the driver writes it; null: it knows none.
[[nodiscard]] const char* error_name(DriverCode code);

// "an illegal memory access was encountered", and the last explanation of this error in this process. The text stays valid.
[[nodiscard]] const char* error_text(DriverCode code);
void explain_error(DriverCode code, const std::string& explanation);

}  // namespace seto::software_gpu::driver
