#pragma once

#include "src/api/support/handles.h"
#include "src/core/call/error_feedback.h"

struct setoErrorFeedback final {
  static constexpr std::uint64_t kMagic = 0x5e70c0de000efeed;

  std::atomic<std::uint64_t> magic{kMagic};
  std::shared_ptr<seto::ErrorFeedback> state;
};

namespace seto::api {

Result<std::shared_ptr<ErrorFeedback>> feedback_of(setoErrorFeedback_t handle);

}  // namespace seto::api
