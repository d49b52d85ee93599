#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <string>

#include "src/torch/communicator.h"

namespace seto::torch_backend {

// What a codec left out of the sums of one tensor on this rank, as the library keeps it. One thread at a time.
class ErrorFeedback final {
 public:
  ErrorFeedback(Channel& channel, std::size_t count, c10::ScalarType type);
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
