#pragma once

#include <memory>
#include <span>
#include <vector>

#include "src/engine/device/device_channels.h"
#include "src/engine/kernels/device_launch.h"
#include "tests/device_engine/device_job.h"
#include "tests/device_engine/relayed_hosts.h"

namespace seto::support {

// Executes the programs of a launch as one block, on the calling thread.
void run_emulated_block(DataType type, bool coded, const kernels::LaunchArguments& launch, std::uint32_t block);

// Executes device programs with the source of the kernels, compiled for the host: each block is a thread, which is the block's
// only one. A race detector sees how blocks of different ranks order their accesses; barriers within a block do not exist here.
class EmulatedDevices final {
 public:
  // `relayed`: pairs of ranks that share no memory; a thread carries their messages. `gpu_seed`: as of RelayedHosts.
  static Result<std::unique_ptr<EmulatedDevices>> create(const std::vector<BoundProgram>& programs, const DeviceCut& cut,
                                                         const RelayedPairs& relayed = {}, std::uint64_t gpu_seed = 0);

  // One operation on all ranks. Blocks that wait longer than the timeout are stopped, and the failure says where they were.
  [[nodiscard]] Status run(std::vector<DeviceMemory>& memory, std::vector<std::vector<std::byte>>& residuals,
                           std::uint64_t timeout_ms = 100'000);
  // The ranks that take part in run(), the first ones. The others never launch.
  void launch_only(std::size_t ranks) { launched_ = ranks; }
  // A launch executes the program so many times, each as an operation on the same memory.
  void repeat(std::uint32_t times) { times_ = times; }
  [[nodiscard]] std::size_t relayed_streams() const { return relay_ != nullptr ? relay_->streams() : 0; }
  [[nodiscard]] const RelayedHosts* relay() const { return relay_.get(); }

 private:
  struct RankState {
    std::vector<std::uint64_t> workspace;  // of words, so that flags are aligned
    std::vector<std::byte> program;
    std::vector<std::byte> scratch;
    std::vector<std::uint64_t> reports;
    std::uint64_t progress = 0;
  };

  EmulatedDevices(const BoundProgram& program, const DeviceCut& cut)
      : type_(program.type), coded_(program.codec != 0), cut_(cut) {}
  [[nodiscard]] kernels::LaunchArguments arguments_of(std::size_t rank, DeviceMemory& memory, std::vector<std::byte>& residual);

  DataType type_;
  bool coded_;  // the kernels with codecs run
  DeviceCut cut_;
  std::vector<RankState> ranks_;
  std::unique_ptr<RelayedHosts> relay_;  // null: no pair is relayed
  std::size_t launched_ = 0;
  std::uint32_t times_ = 1;
  std::uint32_t stop_ = 0;
};

}  // namespace seto::support
