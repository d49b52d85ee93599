#pragma once

#include <optional>
#include <string>

namespace seto::software_gpu {

// The compiler: the program that CUDACXX names, else that which ./dev test has installed in build-nvcc of the working
// directory, else the nvcc of the PATH. It must be of version 13.0 or later.
[[nodiscard]] std::optional<std::string> find_nvcc();

inline constexpr const char* kNeedsNvcc = "skipped: needs nvcc 13 or later, as CUDACXX, from ./dev test or in the PATH";

struct CommandOutput {
  std::string text;
  int status = -1;  // that of the process, as wait() gives it
};
[[nodiscard]] CommandOutput run_command(const std::string& command);

// Compiles a file of tests/software_gpu/kernels to PTX of an architecture ("compute_80"). Empty: it failed, and said why.
[[nodiscard]] std::string compile_to_ptx(const std::string& nvcc, const std::string& file, const std::string& architecture);

}  // namespace seto::software_gpu
