#include "src/base/clock.h"

#include <algorithm>
#include <ctime>
#include <limits>

namespace seto {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr double kNsPerSecond = 1e9;
constexpr std::uint64_t kCalibrationNs = 2 * kNsPerMs;
constexpr int kBrackets = 8;
constexpr int kLookMs = 20;  // how often a wait looks at the stop flag of its deadline

struct Sample {
  std::uint64_t ns;
  std::uint64_t ticks;
};

// Two tick reads around a clock read; the narrowest of several pairs, because a thread can be descheduled between them.
Sample sample_both() {
  Sample best{};
  std::uint64_t narrowest = std::numeric_limits<std::uint64_t>::max();
  for (int bracket = 0; bracket < kBrackets; ++bracket) {
    const std::uint64_t before = ticks();
    const std::uint64_t now = monotonic_ns();
    const std::uint64_t width = ticks() - before;
    if (width < narrowest) {
      narrowest = width;
      best = {now, before + width / 2};
    }
  }
  return best;
}

double measured_rate() {
  const Sample start = sample_both();
  while (monotonic_ns() - start.ns < kCalibrationNs) {
  }
  const Sample end = sample_both();
  return static_cast<double>(end.ticks - start.ticks) * kNsPerSecond / static_cast<double>(end.ns - start.ns);
}

}  // namespace

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

double ticks_per_second() {
  static const double rate = measured_rate();
  return rate;
}

std::uint64_t ticks_to_ns(std::uint64_t ticks) {
  return static_cast<std::uint64_t>(static_cast<double>(ticks) * kNsPerSecond / ticks_per_second());
}

Deadline Deadline::after_ms(std::uint64_t timeout_ms) {
  const std::uint64_t now = monotonic_ns();
  const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - now;
  return Deadline(timeout_ms < room / kNsPerMs ? now + timeout_ms * kNsPerMs : std::numeric_limits<std::uint64_t>::max());
}

Deadline Deadline::unless(const std::atomic<bool>* stop) const {
  Deadline either = *this;
  if (stop == nullptr) {
    either.stops_ = {};
    return either;
  }
  either.stops_[either.stops_[0] == nullptr ? 0 : 1] = stop;
  return either;
}

Deadline Deadline::at(std::uint64_t at_ns) const {
  Deadline other = *this;
  other.at_ns_ = at_ns;
  return other;
}

Deadline Deadline::sooner_ms(std::uint64_t timeout_ms) const { return at(std::min(at_ns_, after_ms(timeout_ms).at_ns_)); }

Deadline Deadline::later_ms(std::uint64_t more_ms) const {
  const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - at_ns_;
  return at(more_ms < room / kNsPerMs ? at_ns_ + more_ms * kNsPerMs : std::numeric_limits<std::uint64_t>::max());
}

int Deadline::wait_ms() const { return stops_[0] == nullptr ? remaining_ms() : std::min(remaining_ms(), kLookMs); }

int Deadline::remaining_ms() const {
  const std::uint64_t now = monotonic_ns();
  if (stopped() || now >= at_ns_) return 0;
  const std::uint64_t left = (at_ns_ - now) / kNsPerMs + 1;
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<int>::max());
  return static_cast<int>(left < kMost ? left : kMost);
}

}  // namespace seto
