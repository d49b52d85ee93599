#pragma once

#include <string>

#include "src/engine/bound_program.h"

namespace seto::support {

// The image of the kernel that runs a program: "float", "coded_float".
[[nodiscard]] std::string image_name(const BoundProgram& program);
// The kernel itself: "seto_run_float".
[[nodiscard]] std::string kernel_name(const BoundProgram& program);

// The GPUs in these tests are of kind 9.0.
inline constexpr int kCapability = 90;
// The PTX of it that such a GPU would run. Empty: the library has no kernels.
[[nodiscard]] std::string kernel_ptx(const BoundProgram& program);

}  // namespace seto::support
