// Error feedback: the state is owned by the caller.

#include "src/api/calls/error_feedback.h"

#include "src/core/call/error_feedback.h"
#include "src/core/communicator/communicator.h"
#include "src/core/device_memory/device_communicator.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace seto::api {

Result<std::shared_ptr<ErrorFeedback>> feedback_of(setoErrorFeedback_t handle) {
  if (handle == nullptr) return null_argument("state");
  if (!live_feedbacks.contains(handle))
    return failure(Code::invalid_argument, "errorFeedback: this is not a state of setoErrorFeedbackCreate, or it was destroyed");
  return handle->state;
}

}  // namespace seto::api

extern "C" {

setoResult_t setoErrorFeedbackCreate(setoErrorFeedback_t* state, size_t count, setoDataType_t datatype, setoComm_t comm) {
  return enter([&]() -> Status {
    if (state == nullptr) return null_argument("state");
    *state = nullptr;
    SETO_TRY(check_handle(comm));
    const CallGuard guard(*comm);
    SETO_ASSIGN(const Communicator* const communicator, usable(comm));
    if (static_cast<unsigned>(datatype) >= kDataTypeCount)
      return failure(Code::invalid_argument, "datatype: %d is not a setoDataType_t", static_cast<int>(datatype));
    const auto type = static_cast<DataType>(datatype);
    SETO_ASSIGN(std::shared_ptr<ErrorFeedback> made, comm->device != nullptr
                                                         ? comm->device->make_feedback(type, count)
                                                         : ErrorFeedback::create(type, count, communicator->serial()));
    auto handle = std::make_unique<setoErrorFeedback>();
    handle->state = std::move(made);
    *state = handle.release();
    return {};
  });
}

setoResult_t setoErrorFeedbackReset(setoErrorFeedback_t state) {
  return enter([&]() -> Status {
    SETO_ASSIGN(const std::shared_ptr<ErrorFeedback> feedback, feedback_of(state));
    return feedback->reset();
  });
}

setoResult_t setoErrorFeedbackSize(setoErrorFeedback_t state, size_t* size) {
  return enter([&]() -> Status {
    if (size == nullptr) return null_argument("size");
    SETO_ASSIGN(const std::shared_ptr<ErrorFeedback> feedback, feedback_of(state));
    *size = feedback->saved_size();
    return {};
  });
}

setoResult_t setoErrorFeedbackSave(setoErrorFeedback_t state, void* saved, size_t size) {
  return enter([&]() -> Status {
    SETO_ASSIGN(const std::shared_ptr<ErrorFeedback> feedback, feedback_of(state));
    if (saved == nullptr) return null_argument("saved");
    return feedback->save({static_cast<std::byte*>(saved), size});
  });
}

setoResult_t setoErrorFeedbackLoad(setoErrorFeedback_t state, const void* saved, size_t size) {
  return enter([&]() -> Status {
    SETO_ASSIGN(const std::shared_ptr<ErrorFeedback> feedback, feedback_of(state));
    if (saved == nullptr) return null_argument("saved");
    return feedback->load({static_cast<const std::byte*>(saved), size});
  });
}

// A call that still uses the state holds a share of it.
setoResult_t setoErrorFeedbackDestroy(setoErrorFeedback_t state) {
  return enter([&]() -> Status {
    SETO_TRY(feedback_of(state).status());
    delete state;
    return {};
  });
}

}  // extern "C"
