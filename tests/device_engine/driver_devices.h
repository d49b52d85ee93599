#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "src/device/cuda/driver.h"
#include "src/engine/device/device_channels.h"
#include "tests/device_engine/device_job.h"

namespace seto::support {

// Executes device programs by the compiled kernels, through a driver: the ranks' GPUs are 0, 1, ... in turn, all in this process.
class DriverDevices final {
 public:
  struct Setup {
    const cuda::Driver* driver = nullptr;
    int gpus = 1;
    std::function<Result<cuda::Kernel>(int gpu)> kernel;  // in the context of the GPU, which is current
    unsigned threads = 64;                                // of a block
  };
  static Result<std::unique_ptr<DriverDevices>> create(const Setup& setup, const std::vector<BoundProgram>& programs,
                                                       const DeviceCut& cut);
  ~DriverDevices();
  DriverDevices(const DriverDevices&) = delete;
  DriverDevices& operator=(const DriverDevices&) = delete;

  // One operation on all ranks. Kernels that run for longer are stopped, and the failure says where they were.
  [[nodiscard]] Status run(std::vector<DeviceMemory>& memory, std::vector<std::vector<std::byte>>& residuals,
                           std::uint64_t timeout_ms = 100'000);
  // The ranks that take part in run(), the first ones. The others never launch.
  void launch_only(std::size_t ranks) { launched_ = ranks; }

 private:
  struct RankState {
    cuda::Context context = nullptr;
    cuda::Stream stream = nullptr;
    cuda::Kernel kernel = nullptr;
    std::vector<cuda::DevicePointer> allocations;
    cuda::DevicePointer workspace = 0, program = 0, scratch = 0;
    std::uint64_t* words = nullptr;  // pinned: a report for each block, then the word that stops the kernel
  };
  // The memory of one rank in one operation.
  struct Copies {
    cuda::DevicePointer input = 0, output = 0, scalar = 0, residual = 0;
  };

  DriverDevices(const Setup& setup, const DeviceCut& cut) : setup_(setup), driver_(*setup.driver), cut_(cut) {}
  Status add_rank(const BoundProgram& program, std::size_t workspace_size);
  Status load_program(std::size_t rank, const std::vector<std::byte>& program);
  Result<cuda::DevicePointer> allocate(RankState& rank, std::size_t size);
  Status copy_in(std::size_t rank, const DeviceMemory& memory, const std::vector<std::byte>& residual, Copies& copies);
  Status launch(std::size_t rank, const DeviceMemory& memory, const Copies& copies);
  Status wait_for_all(std::uint64_t timeout_ms);
  Status copy_out(std::size_t rank, DeviceMemory& memory, std::vector<std::byte>& residual, const Copies& copies);
  [[nodiscard]] Status stopped_blocks(std::uint64_t timeout_ms) const;

  Setup setup_;
  const cuda::Driver& driver_;
  DeviceCut cut_;
  std::vector<RankState> ranks_;
  std::size_t launched_ = 0;
};

}  // namespace seto::support
