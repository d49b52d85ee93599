#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/core/device_memory/device_shapes.h"
#include "src/core/progress/call_deadline.h"
#include "src/device/cuda/driver.h"

namespace seto {

class Communicator;
class Launches;
class TransferShapes;

// Which launch of a graph runs, since no event tells of it. The graph itself writes a word of pinned memory before and after its
// kernel: the number of the launch, and 0. Launches of a communicator run one after another, so one word is enough.
class Replays final {
 public:
  // A launch that graphs repeat. Equal ones of several graphs are one.
  struct Captured {
    std::vector<std::shared_ptr<DeviceShape>> shapes;  // of its programs
    std::vector<CallDeadline> limits;                  // of the programs
    std::uint64_t exchange = 0;                        // of transfers: the number before those of the launch

    [[nodiscard]] std::uint64_t ms() const;  // of all programs
    // "300 ms (SETO_OPERATION_TIMEOUT_MS)"
    [[nodiscard]] std::string limit_text() const;
    // "all_reduce of 4 float, sum and the 2 calls after it"
    [[nodiscard]] std::string what() const;
  };

  // `word`: pinned memory, 0, which the GPU sees at `there`. It outlives the object.
  Replays(const cuda::Driver& driver, std::uint32_t* word, kernels::Address there)
      : driver_(driver), word_(word), there_(there) {}

  // On the launching thread, around the kernel in the stream that is captured.
  Status mark_begin(Captured captured, cuda::Stream stream);
  Status mark_end(cuda::Stream stream);

  // For the watcher, which alone calls these: the launch that runs, and whether its time has passed since it was first seen.
  struct Running {
    std::uint32_t number = 0;            // 0: none
    const Captured* captured = nullptr;  // stays
    bool is_overdue = false;
  };
  Running look();
  // The launch that look() has found runs still.
  [[nodiscard]] bool still_runs(const Running& running) const;

 private:
  [[nodiscard]] std::uint32_t number_of(Captured captured);

  const cuda::Driver& driver_;
  std::uint32_t* const word_;
  const kernels::Address there_;
  std::mutex mutex_;                    // of the list
  std::deque<Captured> captured_;       // by number, from 1
  Deadline until_ = Deadline::never();  // the watcher's: of the replay that was seen last
};

// Judges replays for the watcher: no operation of the control stands for them, so their peers may never come.
class ReplayWatch final {
 public:
  // All outlive the object.
  ReplayWatch(Communicator& control, Launches& launches, const TransferShapes& transfers)
      : control_(control), launches_(launches), transfers_(transfers) {}

  // Fails the communicator if the replay that runs has passed its deadline, once its kernel has said for whom it waits.
  void judge();
  [[nodiscard]] bool awaits_answer() const { return overdue_.has_value(); }

 private:
  [[nodiscard]] std::string missing(const Replays::Captured& captured) const;

  Communicator& control_;
  Launches& launches_;
  const TransferShapes& transfers_;
  std::optional<Replays::Running> overdue_;  // it was told to stop
  Deadline until_ = Deadline::never();       // for it to end
};

}  // namespace seto
