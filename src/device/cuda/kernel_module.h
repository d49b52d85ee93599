#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/device/cuda/driver.h"

namespace seto::cuda {

// Kernels as the driver loads them: machine code for some GPUs, and PTX for others.
struct KernelImage {
  const char* name = "";
  const void* data = nullptr;
  std::size_t size = 0;
};

struct KernelImages {
  std::span<const KernelImage> images{};
  const char* architectures = "none";  // "sm_80 sm_90, PTX of compute_80"
  const char* origin = "";             // "built by nvcc 13.0"; without images the reason why
};

struct LoadedKernel {
  Kernel kernel = nullptr;
  int registers = 0;     // of a thread
  int most_threads = 0;  // of a block
};

// Kernels in the context that was current when they were loaded. Loading and finding wait for kernels that run, and such a kernel
// may wait for a peer, so both are done before the first kernel of the library runs.
class KernelModules final {
 public:
  // The driver must live longer than the modules.
  static Result<std::unique_ptr<const KernelModules>> load(const Driver& driver, const KernelImages& images);

  // Unloads them, and with them all kernels that were found.
  ~KernelModules();
  KernelModules(const KernelModules&) = delete;
  KernelModules& operator=(const KernelModules&) = delete;

  // Finds a kernel that will run in blocks of `threads` threads.
  [[nodiscard]] Result<LoadedKernel> find(const char* name, int threads) const;

 private:
  KernelModules(const Driver& driver, const KernelImages& images, Context context);
  Status load_image(const KernelImage& image);
  [[nodiscard]] Result<LoadedKernel> facts_of(Kernel kernel, const char* name, int threads) const;

  const Driver& driver_;
  const std::string origin_;
  const Context context_;
  std::vector<Module> modules_;
};

}  // namespace seto::cuda
