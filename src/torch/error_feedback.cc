#include "src/torch/error_feedback.h"

#include "src/torch/errors.h"
#include "src/torch/types.h"

namespace seto::torch_backend {

ErrorFeedback::ErrorFeedback(Communicator& communicator, std::size_t count, c10::ScalarType type)
    : state_(communicator.make_error_feedback(count, moved_as(type).type)) {}

void ErrorFeedback::reset() { check(setoErrorFeedbackReset(state_), "error feedback"); }

std::string ErrorFeedback::save() const {
  std::size_t size = 0;
  check(setoErrorFeedbackSize(state_, &size), "error feedback");
  std::string saved(size, '\0');
  check(setoErrorFeedbackSave(state_, saved.data(), saved.size()), "error feedback");
  return saved;
}

void ErrorFeedback::load(const std::string& saved) {
  check(setoErrorFeedbackLoad(state_, saved.data(), saved.size()), "error feedback");
}

}  // namespace seto::torch_backend
