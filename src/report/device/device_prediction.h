#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "src/core/choice/planner.h"
#include "src/engine/simulation/simulated_devices.h"
#include "src/report/device/device_model.h"

namespace seto {

// One algorithm on GPU memory, with the fastest of the slices that were tried.
struct DevicePrediction {
  const Algorithm* algorithm = nullptr;
  std::uint64_t bytes = 0;        // as in the size column of the benchmarks
  std::uint64_t slice_bytes = 0;  // of each chunk
  std::uint64_t slices = 0;
  double seconds = 0;
  std::uint32_t blocks = 0;
  bool marked = false;  // an exchange of marked messages (decision 50)
  bool lent = false;    // messages are read in the buffers of the peers (decision 36), all or some of them
  bool lent_all = false;
  double least_seconds = 0;  // the blocks of a GPU overlap so well that its busiest resource never waits
  double bus_bytes_per_second = 0;
  DeviceOutcome outcome;
};

// All algorithms that can run, the fastest first.
using DevicePredictions = std::vector<DevicePrediction>;

inline constexpr std::uint64_t kFirstPredictedSize = 8;
inline constexpr std::uint64_t kLastPredictedSize = std::uint64_t{1} << 30;
inline constexpr std::size_t kMostWorkspace = std::size_t{64} << 20;  // assumed: 16 times the workspace of now
inline constexpr std::uint32_t kDeviceSlots = 2;                      // of each channel

// Predicts a call whose size column shows that many bytes. Of the question count collective, type, root and pin; `bytes` is not
// looked at.
Result<DevicePredictions> predict_on_devices(const Question& question, std::uint64_t bytes, const DeviceModel& model);

// Predicts the call as src/core/device_memory runs it now, by its rules: choice takes the algorithm by the costs that a
// communicator assumes for these GPUs; messages of 16 KiB or more are lent where the plan permits it; the others have as many
// slots as there are stages and one more, and all of them fit into its workspace.
Result<DevicePrediction> predict_as_cut_now(const Question& question, std::uint64_t bytes, const DeviceModel& model);

// A size in both ways.
struct DeviceSize {
  DevicePredictions fastest;
  DevicePrediction now;
};
Result<DeviceSize> predict_size(const Question& question, std::uint64_t bytes, const DeviceModel& model);

// The pinned algorithm with slices of that many elements.
Result<DevicePrediction> predict_slices(const Question& question, std::uint64_t bytes, const DeviceModel& model,
                                        std::uint64_t slice_elements);

// The benchmarks multiply the bytes of the size column with this number.
double bus_factor(Collective collective, int ranks);

}  // namespace seto
