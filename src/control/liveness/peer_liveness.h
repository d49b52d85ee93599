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

// SETO_HEARTBEAT_MS and SETO_LIVENESS_TIMEOUT_MS. The clock is the monotonic one but in tests.
struct LivenessSettings {
  std::uint64_t heartbeat_ms = 1'000;  // 0: no sign of life is sent or expected
  std::uint64_t timeout_ms = 5'000;
  std::uint64_t (*now_ns)() = monotonic_ns;
};

// Time as this process has lived it: while it was stopped, starved or on a suspended machine, none passes. So nobody else is
// taken for silent because nobody listened. Ticks by one thread; read by any.
class OwnTime final {
 public:
  OwnTime(std::uint64_t period_ns, std::uint64_t (*clock)()) : period_ns_(period_ns), clock_(clock), last_ns_(clock()) {}

  // Was due one period after the last: what is missing beyond half a period more was not lived.
  void tick();
  [[nodiscard]] std::uint64_t now_ns() const { return clock_() - stolen_ns_.load(std::memory_order_relaxed); }

 private:
  const std::uint64_t period_ns_;
  std::uint64_t (*const clock_)();
  std::uint64_t last_ns_;
  std::atomic<std::uint64_t> stolen_ns_{0};
};

// When a peer was heard last, in own time.
class Silence final {
 public:
  explicit Silence(const OwnTime& time) : heard_ns_(time.now_ns()) {}
  void end(const OwnTime& time) { heard_ns_ = time.now_ns(); }
  // For how long. Own time goes back where some turned out not to have been lived.
  [[nodiscard]] std::uint64_t lasted_ns(const OwnTime& time) {
    const std::uint64_t now = time.now_ns();
    if (heard_ns_ > now) heard_ns_ = now;
    return now - heard_ns_;
  }

 private:
  std::uint64_t heard_ns_;
};

// "gave no sign of life for 5.0 s (SETO_LIVENESS_TIMEOUT_MS)".
[[nodiscard]] std::string silence_text(std::uint64_t lasted_ns);

// A beat on the control thread each period, while somebody wants it.
class Pulse final {
 public:
  // Beats on the control thread, no lock held. With a heartbeat of 0 it never does. A heartbeat longer than a third of the
  // timeout is shortened to that: a sign of life must be able to come in time.
  static Result<std::unique_ptr<Pulse>> create(ControlThread& control, const LivenessSettings& settings,
                                               std::function<void()> beat);

  // Any thread. Started again, it goes on in its rhythm.
  void start();
  void stop();

  [[nodiscard]] bool on() const { return period_ns_ > 0; }
  [[nodiscard]] std::uint64_t period_ns() const { return period_ns_; }
  [[nodiscard]] std::uint64_t timeout_ns() const { return timeout_ns_; }
  [[nodiscard]] const OwnTime& time() const { return time_; }

 private:
  Pulse(std::uint64_t period_ns, const LivenessSettings& settings);
  void set_timer(std::uint64_t period_ns);

  const std::uint64_t period_ns_;
  const std::uint64_t timeout_ns_;
  OwnTime time_;
  std::mutex mutex_;
  bool started_ = false;
  PrivateFd timer_;
  Watch ticking_;
};

}  // namespace seto
