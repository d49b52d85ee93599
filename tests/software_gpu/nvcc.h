#pragma once

#include <optional>
#include <string>

namespace seto::software_gpu {

// The compiler: the program that SETO_NVCC names, else that which ./dev test has installed in build-nvcc of the working
// directory, else the nvcc of the PATH. It must be of version 13.0 or later.
[[nodiscard]] std::optional<std::string> find_nvcc();

inline constexpr const char* kNeedsNvcc = "skipped: needs nvcc 13 or later, as SETO_NVCC or in the PATH";

// Compiles a file of tests/software_gpu/kernels to PTX of an architecture ("compute_80"). Empty: it failed, and said why.
[[nodiscard]] std::string compile_to_ptx(const std::string& nvcc, const std::string& file, const std::string& architecture);

}  // namespace seto::software_gpu
