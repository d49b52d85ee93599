#pragma once

#include <string>

#include "src/engine/bound_program.h"

namespace seto::support {

// The image of the kernel that runs a program: "float", "coded_float".
[[nodiscard]] std::string image_name(const BoundProgram& program);
// The kernel itself: "seto_run_float".
[[nodiscard]] std::string kernel_name(const BoundProgram& program);

// The PTX of it that a GPU of this compute capability (90 is 9.0) would run. Empty: the library has no kernels.
[[nodiscard]] std::string kernel_ptx(const BoundProgram& program, int capability);

}  // namespace seto::support
