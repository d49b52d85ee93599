#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "src/base/clock.h"

namespace seto {

// Decides when a task that does not end gets a line in the log: once, and long before its deadline, which may be half an hour
// away. Asked only while nothing moves.
class SlowCallWarning final {
 public:
  static constexpr std::uint64_t kLateMs = 10'000;

  // Counts from the first question until silenced.
  [[nodiscard]] bool due(std::uint64_t timeout_ms) {
    if (!at_) at_ = Deadline::after_ms(after_ms(timeout_ms));
    return at_->passed();
  }
  void silence() { at_ = Deadline::never(); }
  [[nodiscard]] static double seconds(std::uint64_t timeout_ms) { return static_cast<double>(after_ms(timeout_ms)) / 1e3; }

 private:
  // The delay of the warning: half of a short deadline.
  static std::uint64_t after_ms(std::uint64_t timeout_ms) { return std::min(kLateMs, timeout_ms / 2); }

  std::optional<Deadline> at_;
};

}  // namespace seto
