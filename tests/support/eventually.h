#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>

#include "src/base/clock.h"

namespace seto::testing {

// Waits for a condition that other threads or processes bring about, and of which no event tells. Returns false at the limit.
inline bool eventually(const std::function<bool()>& condition, std::uint64_t limit_ms = 30'000) {
  const Deadline until = Deadline::after_ms(limit_ms);
  while (!condition()) {
    if (until.passed()) return false;
    poll(nullptr, 0, 1);
  }
  return true;
}

}  // namespace seto::testing
