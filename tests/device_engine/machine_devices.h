#pragma once

#include <string>
#include <vector>

#include "src/engine/device/device_channels.h"
#include "tests/device_engine/device_job.h"
#include "tests/software_gpu/machine.h"

namespace seto::support {

// Executes device programs on the software GPU without a driver, which makes it easy to run a kernel that was changed, under many
// seeds. All ranks have a GPU of their own.
class MachineDevices final {
 public:
  struct Setup {
    std::string ptx;
    std::string kernel;
    bool weak = true;
    std::uint64_t seed = 1;
    std::uint32_t threads = 64;  // of a block
    std::uint64_t step_budget = 20'000'000;
    bool scribbles = false;  // each rank inverts its input as soon as its kernel has ended, as a caller may
    // By rank, how many operations are one launch; empty: each is one. All operations then work on the memory of the first one.
    std::vector<std::uint32_t> fused{};
    std::uint64_t exchanges = 0;    // of marked messages, as if so many were done
    bool one_slot = false;          // marked messages have one slot in place of two
    std::uint32_t turns_alone = 0;  // of warps of rank 0, before the other ranks begin their first operation
  };
  // The programs of all ranks for one call.
  struct Call {
    std::vector<BoundProgram> programs;
    DeviceCut cut;
  };
  // The calls share the workspaces.
  MachineDevices(const Setup& setup, const std::vector<Call>& calls);

  // Runs operations, each by the memory of all ranks; the calls take turns. A rank launches the next one when its kernel has
  // ended, as on a stream: other ranks may still run the operation before. Throws the machine's Fault.
  void run(std::vector<std::vector<DeviceMemory>>& operations);

  // Bytes that kernels have read and written since the start, in the callers' buffers, in scratch and in workspaces. Flags and
  // programs are not counted.
  [[nodiscard]] std::uint64_t traffic();
  // Flags that a rank has got from all others since the start.
  [[nodiscard]] std::uint64_t flags_of(std::size_t rank);
  // Flags that rank 0 had sent when its turns alone were over.
  [[nodiscard]] std::uint64_t flags_sent_alone() const { return flags_sent_alone_; }

 private:
  struct RankState {
    std::vector<std::uint64_t> device_programs;  // by call
    std::uint64_t workspace = 0, scratch = 0, reports = 0, stop = 0, progress = 0;
  };
  // The buffers of a rank in an operation.
  struct Copies {
    std::uint64_t input = 0, output = 0, scalar = 0;
  };
  std::uint64_t allocate(std::size_t rank, std::size_t size, const char* name);
  Copies copies_of(std::size_t rank, const DeviceMemory& memory);
  void launch(std::size_t rank, std::size_t operation, std::size_t count, const DeviceMemory& memory, const Copies& copies);
  void scribble(std::size_t rank, const DeviceMemory& memory, const Copies& copies);
  [[nodiscard]] bool is_running(std::size_t rank) const;

  Setup setup_;
  std::vector<std::uint32_t> blocks_;  // by call
  software_gpu::Machine machine_;
  const software_gpu::Program* program_ = nullptr;  // it has no variables, so all GPUs run the same
  const software_gpu::Program* scribbling_ = nullptr;
  std::vector<RankState> ranks_;
  std::vector<std::uint64_t> buffers_;
  std::uint64_t flags_sent_alone_ = 0;
};

}  // namespace seto::support
