#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace seto {

// Nanoseconds of the monotonic clock: for deadlines, and for times that leave the process.
[[nodiscard]] std::uint64_t monotonic_ns();

// A raw time stamp for the data path (x86: the TSC; a read takes 10 ns, a read of the clock 23 ns, measured). It means something
// on one machine only; ticks_to_ns converts it. It is not ordered with the memory accesses around it.
[[nodiscard]] inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();  // a header of intrinsics would add a second to the compile time of half of all files
#elif defined(__aarch64__)
  std::uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return monotonic_ns();
#endif
}

// The number of ticks in a second. The first call measures them for about 2 ms against the monotonic clock (repeated measurements
// agreed to 1e-5 unless the thread was descheduled); later calls return the same number. Any thread.
[[nodiscard]] double ticks_per_second();

[[nodiscard]] std::uint64_t ticks_to_ns(std::uint64_t ticks);

// A point in time, fixed when the object is made. A query costs one clock read. A deadline of 0 ms has passed at once.
class Deadline final {
 public:
  static Deadline after_ms(std::uint64_t timeout_ms);
  static Deadline never() { return Deadline(~std::uint64_t{0}); }

  // The same deadline, which also counts as passed once the flag is set. The flag must outlive the deadline and its copies. There
  // are at most two flags: the user's, and one for the work that this deadline bounds. Null adds no flag.
  [[nodiscard]] Deadline unless(const std::atomic<bool>* stop) const;
  // Deadlines with the same flags: one that passes at most timeout_ms from now, and one that passes more_ms later.
  [[nodiscard]] Deadline sooner_ms(std::uint64_t timeout_ms) const;
  [[nodiscard]] Deadline later_ms(std::uint64_t more_ms) const;

  [[nodiscard]] bool passed() const { return stopped() || monotonic_ns() >= at_ns_; }
  [[nodiscard]] bool stopped() const { return is_set(stops_[0]) || is_set(stops_[1]); }
  // Rounded up, so that a wait of this length reaches the deadline; 0 once passed; fits the timeout of epoll_wait.
  [[nodiscard]] int remaining_ms() const;
  // How long a wait may sleep before it must call passed() again. Setting a flag wakes no thread, so with a flag this time is
  // short.
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
