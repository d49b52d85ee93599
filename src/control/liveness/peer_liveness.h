#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "src/base/clock.h"
#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/control/control_thread.h"

namespace seto {

// SETO_HEARTBEAT_MS and SETO_LIVENESS_TIMEOUT_MS. Tests replace the monotonic clock.
struct LivenessSettings {
  std::uint64_t heartbeat_ms = 1'000;  // 0: no heartbeat is sent or expected
  std::uint64_t timeout_ms = 5'000;
  std::uint64_t (*now_ns)() = monotonic_ns;
};

// The time during which this process was running. It does not advance while the process is stopped or starved, or the machine is
// suspended, so that no peer counts as silent because this process did not read. One thread ticks; any thread reads.
class RunningTime final {
 public:
  RunningTime(std::uint64_t period_ns, std::uint64_t (*clock)()) : period_ns_(period_ns), clock_(clock), last_ns_(clock()) {}

  // Called once a period. Time beyond one and a half periods since the last tick counts as not running.
  void tick();
  [[nodiscard]] std::uint64_t now_ns() const { return clock_() - paused_ns_.load(std::memory_order_relaxed); }

 private:
  const std::uint64_t period_ns_;
  std::uint64_t (*const clock_)();
  std::uint64_t last_ns_;
  std::atomic<std::uint64_t> paused_ns_{0};
};

// The running time at which data of a peer was received last.
class LastReceived final {
 public:
  explicit LastReceived(const RunningTime& time) : received_ns_(time.now_ns()) {}
  void update(const RunningTime& time) { received_ns_ = time.now_ns(); }
  // The running time since then. Running time may step back when a pause is detected.
  [[nodiscard]] std::uint64_t age_ns(const RunningTime& time) {
    const std::uint64_t now = time.now_ns();
    if (received_ns_ > now) received_ns_ = now;
    return now - received_ns_;
  }

 private:
  std::uint64_t received_ns_;
};

// "gave no sign of life for 5.0 s (SETO_LIVENESS_TIMEOUT_MS)".
[[nodiscard]] std::string silence_text(std::uint64_t lasted_ns);

// A periodic timer on the control thread for heartbeats, with the running time of this process.
class HeartbeatTimer final {
 public:
  // Calls `beat` on the control thread with no lock held; never with a heartbeat of 0. A heartbeat longer than a third of the
  // timeout is shortened to that, so that a heartbeat can arrive in time.
  static Result<std::unique_ptr<HeartbeatTimer>> create(ControlThread& control, const LivenessSettings& settings,
                                                        std::function<void()> beat);

  // Start and stop the timer. Any thread.
  void start();
  void stop();

  [[nodiscard]] bool on() const { return period_ns_ > 0; }
  [[nodiscard]] std::uint64_t period_ns() const { return period_ns_; }
  [[nodiscard]] std::uint64_t timeout_ns() const { return timeout_ns_; }
  [[nodiscard]] const RunningTime& time() const { return time_; }

 private:
  HeartbeatTimer(std::uint64_t period_ns, const LivenessSettings& settings);
  void set_timer(std::uint64_t period_ns);

  const std::uint64_t period_ns_;
  const std::uint64_t timeout_ns_;
  RunningTime time_;
  std::mutex mutex_;
  bool started_ = false;
  PrivateFd timer_;
  Watch ticking_;
};

}  // namespace seto
