#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace seto {

// Nanoseconds of the monotonic clock: for deadlines, and for times that leave the process.
[[nodiscard]] std::uint64_t monotonic_ns();

// A raw time stamp for the data path (x86: TSC, measured 10 ns a read against 23 ns for the clock). Of one machine only; made
// readable by ticks_to_ns. Not ordered with the memory accesses around it.
[[nodiscard]] inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return monotonic_ns();
#endif
}

// Ticks in a second. The first call measures for about 2 ms against the monotonic clock (runs of it agreed to 1e-5 if the thread
// was not held up); later calls return the same number. Any thread.
[[nodiscard]] double ticks_per_second();

[[nodiscard]] std::uint64_t ticks_to_ns(std::uint64_t ticks);

// Fixed at its making; asking costs one clock read. A deadline of 0 ms has passed at once.
class Deadline final {
 public:
  static Deadline after_ms(std::uint64_t timeout_ms);
  static Deadline never() { return Deadline(~std::uint64_t{0}); }

  // The same, but it has also passed once the flag is set, which outlives it and its copies. Two flags at most: the user's, and
  // that of the part of the work which this deadline bounds. Null: the same without any.
  [[nodiscard]] Deadline unless(const std::atomic<bool>* stop) const;
  // With the same flags: at most so much from now; so much later.
  [[nodiscard]] Deadline sooner_ms(std::uint64_t timeout_ms) const;
  [[nodiscard]] Deadline later_ms(std::uint64_t more_ms) const;

  [[nodiscard]] bool passed() const { return stopped() || monotonic_ns() >= at_ns_; }
  [[nodiscard]] bool stopped() const { return is_set(stops_[0]) || is_set(stops_[1]); }
  // Rounded up, so that a wait of this length reaches the deadline; 0 once passed; fits the timeout of epoll_wait.
  [[nodiscard]] int remaining_ms() const;
  // How long a wait may take before it looks at passed() again: where there is a flag, nobody wakes whoever waits.
  [[nodiscard]] int wait_ms() const;

 private:
  using Flag = const std::atomic<bool>*;
  static bool is_set(Flag flag) { return flag != nullptr && flag->load(std::memory_order_acquire); }

  explicit Deadline(std::uint64_t at_ns) : at_ns_(at_ns) {}
  [[nodiscard]] Deadline at(std::uint64_t at_ns) const;
  std::uint64_t at_ns_;
  std::array<Flag, 2> stops_{};
};

}  // namespace seto
