#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/core/communicator/communicator.h"
#include "src/core/device_memory/launches.h"
#include "src/core/device_memory/transfer_shapes.h"
#include "src/core/progress/slow_call_warning.h"

namespace seto {

// Judges launches of sends and receives for the watcher, as a task of such calls on host memory judges itself: only the peers of
// messages that have not ended matter.
class TransferWatch final {
 public:
  // All outlive the object. `relay`: null: all GPUs reach each other.
  TransferWatch(Communicator& control, Launches& launches, const TransferShapes& shapes, const Relay* relay)
      : control_(control), launches_(launches), shapes_(shapes), relay_(relay) {}

  // The launch is under way. Fails the communicator if it cannot end well, unless it is overdue.
  void judge(const Launches::State& state);
  // Fails the communicator: the launch has passed its deadline, and was stopped.
  void fail_overdue(const Launches::State& state);
  // Fails the communicator if a kernel has refused a message, be it of a graph.
  void check_refusal();

 private:
  using Waiting = std::vector<TransferShapes::Waiting>;

  [[nodiscard]] Waiting waiting(const Launches::State& state) const;
  void look_around(const Launches::State& state);

  Communicator& control_;
  Launches& launches_;
  const TransferShapes& shapes_;
  const Relay* const relay_;
  std::uint64_t launch_ = 0;  // the last one that was judged
  SlowCallWarning slow_;
  Deadline next_look_ = Deadline::after_ms(0);
  std::optional<Deadline> lost_until_;  // for messages with a rank that has left, which may be here already
};

}  // namespace seto
