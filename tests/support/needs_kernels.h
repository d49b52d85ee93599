#pragma once

#include <string>

#include "src/engine/kernels/kernel_images.h"

namespace seto::support {

// Whether the build has embedded GPU kernels. Tests that need them are skipped without, and give this reason.
[[nodiscard]] inline bool has_kernels() { return !kernels::kernel_images().images.empty(); }
[[nodiscard]] inline std::string needs_kernels() {
  return std::string("skipped: needs a library with GPU kernels; this one was ") + kernels::kernel_images().origin +
         " (./dev test installs nvcc)";
}

}  // namespace seto::support
