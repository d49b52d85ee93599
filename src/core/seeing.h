#pragma once

#include <atomic>
#include <cstdint>

#include "src/base/config.h"
#include "src/base/result.h"
#include "src/core/record/flight_recorder.h"
#include "src/core/record/wait_reports.h"

namespace seto {

class Communicator;

// What a communicator lets others see while it works: its flight recorder, what its calls wait for, and that it has failed.
class Seeing final {
 public:
  Seeing() = default;
  ~Seeing() { stop(); }
  Seeing(const Seeing&) = delete;
  Seeing& operator=(const Seeing&) = delete;

  // Before any rank is done with its init, so that all hear of it. Fails for a signal that cannot be had.
  static Status prepare(const Config& config);
  // The last thing that makes a communicator: from now on any thread may dump it, and its calls are recorded. What it measured by
  // calls of its own is no call of its user.
  void start(const Communicator& communicator);
  // Before anything of it goes: a dump that was asked for is written now, and none is after this.
  void stop();
  // Once, when the others have been told. Any thread; does not wait.
  void failed();

  [[nodiscard]] Recorder& recorder() { return recorder_; }
  [[nodiscard]] const Recorder& recorder() const { return recorder_; }
  [[nodiscard]] Waits& waits() const { return waits_; }
  // Microseconds of the wall clock; 0: it has not.
  [[nodiscard]] std::uint64_t failed_at_us() const { return failed_at_us_.load(std::memory_order_acquire); }

 private:
  const Communicator* communicator_ = nullptr;  // null: nobody dumps it unasked
  Recorder recorder_;
  mutable Waits waits_;
  std::atomic<std::uint64_t> failed_at_us_{0};
};

// Of the wall clock.
[[nodiscard]] std::uint64_t wall_us();

}  // namespace seto
