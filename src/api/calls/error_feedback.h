#pragma once

#include "src/api/support/handles.h"
#include "src/core/call/error_feedback.h"

namespace seto::api {
inline constinit LiveHandles live_feedbacks;
}  // namespace seto::api

struct setoErrorFeedback final {
  setoErrorFeedback() { seto::api::live_feedbacks.add(this); }
  ~setoErrorFeedback() { seto::api::live_feedbacks.remove(this); }
  setoErrorFeedback(const setoErrorFeedback&) = delete;
  setoErrorFeedback& operator=(const setoErrorFeedback&) = delete;

  std::shared_ptr<seto::ErrorFeedback> state;
};

namespace seto::api {

Result<std::shared_ptr<ErrorFeedback>> feedback_of(setoErrorFeedback_t handle);

}  // namespace seto::api
