#pragma once

#include <cstdint>
#include <vector>

#include "src/engine/device/device_channels.h"
#include "src/engine/kernels/device_launch.h"
#include "tests/device_engine/device_job.h"

namespace seto::support {

// Several calls in the same workspaces, as operations that follow each other, with the source of the kernels on threads of the
// host. A rank begins the next operation when its own part of one has ended, however far the others are.
class EmulatedSequence final {
 public:
  // All calls have one type, one block and no codec.
  static Result<EmulatedSequence> create(const std::vector<DeviceJob>& jobs);

  // Runs operations, each by the memory of all ranks; the jobs take turns. A rank that waits for too long is stopped.
  [[nodiscard]] Status run(std::vector<std::vector<DeviceMemory>>& operations, std::uint64_t timeout_ms = 100'000);
  // One launch of a rank, on the calling thread, in which the program of a job runs so many times. The word that stops kernels is
  // set from the begin, so the rank stores what it can store before it must wait, and never waits. False: it was stopped.
  [[nodiscard]] bool run_until_it_waits(std::size_t rank, std::size_t job, DeviceMemory& memory, std::uint32_t times = 1);
  // The words of a rank's workspace that hold marked messages.
  [[nodiscard]] std::vector<std::uint64_t> marked_words(std::size_t rank) const;
  // As if so many exchanges of marked messages were done.
  void set_exchanges(std::uint64_t exchanges);
  // The device program of a job on a rank, to change it.
  [[nodiscard]] std::vector<std::byte>& program(std::size_t rank, std::size_t job) { return ranks_[rank].programs[job]; }

 private:
  struct RankState {
    std::vector<std::uint64_t> workspace;          // of words, so that flags are aligned
    std::vector<std::vector<std::byte>> programs;  // by job
    std::vector<std::byte> scratch;
    std::vector<std::uint64_t> reports = std::vector<std::uint64_t>(1);
    std::uint64_t progress = 0;
  };

  EmulatedSequence(DataType type, std::size_t ranks) : type_(type), ranks_(ranks) {}
  [[nodiscard]] kernels::LaunchArguments arguments_of(std::size_t rank, std::size_t job, DeviceMemory& memory,
                                                      std::uint32_t& stop);

  DataType type_;
  std::vector<RankState> ranks_;
};

}  // namespace seto::support
