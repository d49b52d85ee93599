#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <string>

#include "src/torch/communicator.h"

namespace seto::torch_backend {

// The error-feedback state of one tensor on this rank, which the library keeps. One thread at a time.
class ErrorFeedback final {
 public:
  ErrorFeedback(Communicator& communicator, std::size_t count, c10::ScalarType type);
  ErrorFeedback(const ErrorFeedback&) = delete;
  ErrorFeedback& operator=(const ErrorFeedback&) = delete;
  ~ErrorFeedback() { (void)setoErrorFeedbackDestroy(state_); }

  [[nodiscard]] setoErrorFeedback_t get() const { return state_; }
  void reset();
  [[nodiscard]] std::string save() const;
  void load(const std::string& saved);

 private:
  setoErrorFeedback_t state_;
};

}  // namespace seto::torch_backend
