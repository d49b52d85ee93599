#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "src/base/clock.h"

namespace seto {

// Tells the core that this thread polls.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Inspection also happens during continuous traffic, so that traffic hides neither a deadline nor a lost peer. One advance of
// data takes at least some 100 ns.
inline constexpr std::uint32_t kMovesBetweenLooks = 1024;

// The waiting strategy of one thread: it spins, then yields, then sleeps, and starts again whenever a task moved. An inspection
// or a clock read costs as much as a yield, so each happens only once per many yields.
//
// A thread that waits for what comes from afar sleeps at once: a wakeup is nothing beside such a round trip, and each poll of
// sockets takes some system calls. all_reduce of 100 MB over 2 Gbit/s and 60 ms, where both ranks and the emulator of the link
// share two cores (AMD EPYC): 577 ms in place of 741 (bench/links, a slow hour of the machine).
class Patience {
 public:
  // `spins`: polls in quick succession before the thread yields its core. It may change meanwhile.
  explicit Patience(const std::atomic<std::uint32_t>& spins) : spins_(spins) {}

  // A task moved. True: inspection is due although tasks move.
  bool moved() {
    spun_ = 0;
    yields_ = 0;
    yielding_since_ = 0;
    return ++moves_ % kMovesBetweenLooks == 0;
  }

  // Nothing moved. `far`: the thread waits for what comes from afar. True: the wait has lasted long enough for an inspection.
  bool lasts(bool far = false) {
    far_ = far;
    if (far) return true;
    if (spun_ < spins_.load(std::memory_order_relaxed)) {
      if (++spun_ > kLooksWithoutPause) spin_pause();
      return false;
    }
    sched_yield();
    return ++yields_ % kYieldsBetweenLooks == 0;
  }

  // Called after lasts() and an inspection: true if the thread should sleep.
  [[nodiscard]] bool tired() {
    if (far_) return true;
    const std::uint64_t now = monotonic_ns();
    if (yielding_since_ == 0) yielding_since_ = now;
    return now - yielding_since_ > kYieldNs;
  }

 private:
  // A wait yields for this long before it sleeps in the kernel. A sleep and its wakeup cost some 10 us, a twentieth of it.
  static constexpr std::uint64_t kYieldNs = 200'000;
  static constexpr std::uint32_t kYieldsBetweenLooks = 32;
  // A pause lasts some 10 ns, a sixth of the latency between near cores.
  static constexpr std::uint32_t kLooksWithoutPause = 32;

  const std::atomic<std::uint32_t>& spins_;
  bool far_ = false;
  std::uint32_t spun_ = 0;
  std::uint32_t yields_ = 0;
  std::uint32_t moves_ = 0;
  std::uint64_t yielding_since_ = 0;
};

}  // namespace seto
