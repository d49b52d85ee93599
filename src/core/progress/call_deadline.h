#pragma once

#include <cstdint>
#include <string>

#include "src/base/config.h"

namespace seto {

// The time limit of a call, and where the limit comes from.
class CallDeadline final {
 public:
  CallDeadline() = default;
  // `of_call`: the call's own limit; 0: none.
  CallDeadline(std::uint32_t of_call, const Config& config)
      : ms_(of_call > 0 ? of_call : config.operation_timeout_ms), of_call_(of_call > 0) {}

  [[nodiscard]] std::uint64_t ms() const { return ms_; }
  // "500 ms (SETO_OPERATION_TIMEOUT_MS)"
  [[nodiscard]] std::string text() const {
    return std::to_string(ms_) + (of_call_ ? " ms (its deadlineMs)" : " ms (SETO_OPERATION_TIMEOUT_MS)");
  }

 private:
  std::uint64_t ms_ = 0;
  bool of_call_ = false;
};

}  // namespace seto
