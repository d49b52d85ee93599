#pragma once

#include <span>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/bootstrap/bootstrap.h"
#include "src/core/choice/cost_model.h"
#include "src/core/choice/gpu_paths.h"
#include "src/core/device_memory/device_shapes.h"
#include "src/core/device_memory/launches.h"
#include "src/core/device_memory/rank_statement.h"

namespace seto {

class Communicator;

// The slowest pair of GPUs that are on one host, by what the ranks have stated of their GPU links and PCI paths: choice has one
// rate for a node, and a plan may use that pair. Where nothing is known, the medium is `unknown`, with constants.
GpuPairCost slowest_pair(const Tiers& tiers, std::span<const RankStatement> statements, const RelayedPairs& relayed);

// The constants of choice for calls between GPUs before anything is measured. `host`: those of the control.
CostModel assumed_device_costs(const CostModel& host, const GpuPairCost& slowest);
// Those of the ranks of a communicator, which it logs.
CostModel assumed_device_costs(const Communicator& control, std::span<const RankStatement> statements,
                               const RelayedPairs& relayed);

// Whether a call is one exchange of marked messages (decision 50): every rank sends `bytes`, at least one, to every other. They
// cross a link twice as long and save about half a hop, which is the wait until stores have arrived before a flag may say so.
bool pays_marks(const Algorithm& algorithm, int ranks, std::uint64_t bytes, const CostModel& costs);

// Processes that share a GPU take turns of milliseconds on it, so their calls say nothing about links.
bool can_measure_device_costs(std::span<const RankStatement> statements);

// All ranks measure a few short calls together, and get the same constants. A longer call is not measured if a shorter one took
// so long that it would hold up the init. The buffers of these calls are the end of the workspace: memory of their own would have
// to be freed, which waits for all kernels of the process.
class DeviceCostMeasurement final {
 public:
  struct Setup {
    const GpuContext* gpu = nullptr;
    Rank rank = 0;
    int ranks = 1;
    DeviceShapes* shapes = nullptr;
    Launches* launches = nullptr;
    kernels::Address workspace = 0;  // of this rank
    std::size_t capacity = 0;        // of the workspace
  };
  static constexpr std::size_t kLongest = std::size_t{1} << 20;  // bytes of a call
  // Bytes of a workspace that the messages of these calls may use.
  static std::size_t capacity_left(std::size_t capacity) { return (capacity - 2 * kLongest) / 256 * 256; }

  explicit DeviceCostMeasurement(const Setup& setup) : setup_(setup) {}
  ~DeviceCostMeasurement();
  DeviceCostMeasurement(const DeviceCostMeasurement&) = delete;
  DeviceCostMeasurement& operator=(const DeviceCostMeasurement&) = delete;

  // Replaces what was assumed. The context is current. A kernel that waits at `until` is stopped, and the init fails.
  Result<CostModel> run(CostModel assumed, Bootstrap& bootstrap, Deadline until);

 private:
  // Seconds of one call of the slowest rank.
  Result<double> time(std::string_view algorithm, std::uint64_t bytes, Bootstrap& bootstrap, Deadline until);
  Result<double> time_here(std::string_view algorithm, std::uint64_t bytes, Deadline until);
  Status launch(const Call& call, int times);
  Status await(Deadline until);

  const Setup setup_;
  cuda::Stream stream_ = nullptr;
};

}  // namespace seto
