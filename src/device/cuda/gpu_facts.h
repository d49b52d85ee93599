#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/device/cuda/driver.h"

namespace seto::cuda {

// A GPU as the driver describes it. Its number is that of CUDA in this process, which CUDA_VISIBLE_DEVICES changes.
struct GpuFacts {
  DeviceNumber number = 0;
  std::string name{};
  int capability_major = 0;
  int capability_minor = 0;
  std::uint64_t memory = 0;
  int multiprocessors = 0;
  std::string pci_address{};  // "0000:1b:00.0"
  std::string uuid{};         // "GPU-6d5d..."; of a slice of a GPU that of the slice
  ComputeMode mode = ComputeMode::shared;
  bool multicast = false;  // one address may stand for memory of several GPUs (NVLS)
};

// The GPUs that this process may use. It initialises CUDA, so it runs only where a user asks for GPUs: a process that is forked
// later cannot use them.
[[nodiscard]] Result<std::vector<GpuFacts>> find_gpus(const Driver& driver);

// "compute capability 9.0, 81079 MiB, PCI 0000:1b:00.0"
[[nodiscard]] std::string facts_text(const GpuFacts& gpu);

// The driver and its GPUs, or the reason why there are none.
struct GpuReport {
  std::string driver{};  // "13.0"; empty: none that can be used
  std::vector<GpuFacts> gpus{};
  std::string trouble{};  // empty: GPUs were found
};

[[nodiscard]] GpuReport report_gpus(const std::string& driver_file = kDriverLibrary);

// The report in one line.
[[nodiscard]] std::string line_of(const GpuReport& report);

}  // namespace seto::cuda
