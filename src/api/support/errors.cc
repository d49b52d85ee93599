#include "src/api/support/errors.h"

#include <exception>
#include <new>

#include "src/api/support/handles.h"

namespace seto::api {
namespace {

constexpr const char* kNothingFailed = "no call on this thread has failed";
constexpr const char* kNoMemory = "out of memory";

// The last failure of a thread, and the text that the last query returned, which must stay valid after that query. A constant
// text is used if there is no memory for a copy.
struct LastError {
  Status status;
  Status shown;
  const char* constant = kNothingFailed;
};

LastError& last_error() {
  thread_local LastError error;
  return error;
}

void remember_constant(const char* text) {
  last_error().status = {};
  last_error().constant = text;
}

const char* last_text() {
  LastError& error = last_error();
  if (error.status.ok()) return error.constant;
  error.shown = error.status;
  return error.shown.text().data();
}

}  // namespace

setoResult_t result_of(Code code) {
  switch (code) {
    case Code::ok:
      return setoSuccess;
    case Code::invalid_argument:
      return setoInvalidArgument;
    case Code::invalid_usage:
      return setoInvalidUsage;
    case Code::unavailable:
      return setoSystemError;
    case Code::remote_error:
      return setoRemoteError;
    case Code::timeout:
      return setoTimeout;
    case Code::aborted:
      return setoInvalidUsage;
    case Code::in_progress:
      return setoInProgress;
    case Code::internal:
      return setoInternalError;
  }
  return setoInternalError;
}

// "In progress" is not an error and keeps the text of the last failure.
setoResult_t deliver_failure(const Status& status) noexcept {
  if (status.code() != Code::in_progress) last_error().status = status;
  return result_of(status.code());
}

setoResult_t deliver_exception() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    remember_constant(kNoMemory);
    return setoSystemError;
  } catch (const std::exception& error) {
    try {
      return deliver(failure(Code::internal, "unexpected: %s", error.what()));
    } catch (...) {
      remember_constant(kNoMemory);
      return setoSystemError;
    }
  } catch (...) {
    remember_constant("unexpected: an exception of an unknown type");
    return setoInternalError;
  }
}

setoResult_t deliver_forked() noexcept {
  remember_constant(
      "this process was forked from one that uses the library: its threads and connections are gone here. Fork before the first "
      "communicator, or exec a new program");
  return setoInvalidUsage;
}

}  // namespace seto::api

using namespace seto::api;  // NOLINT: the entries below belong to no namespace

extern "C" {

setoResult_t setoGetVersion(int* version) {
  return enter([&]() -> seto::Status {
    if (version == nullptr) return null_argument("version");
    *version = SETO_VERSION_CODE;
    return {};
  });
}

const char* setoGetErrorString(setoResult_t result) {
  switch (result) {
    case setoSuccess:
      return "success";
    case setoUnhandledCudaError:
      return "CUDA error";
    case setoSystemError:
      return "system error";
    case setoInternalError:
      return "internal error";
    case setoInvalidArgument:
      return "invalid argument";
    case setoInvalidUsage:
      return "invalid usage";
    case setoRemoteError:
      return "remote error";
    case setoInProgress:
      return "in progress";
    case setoTimeout:
      return "timeout";
    case setoNumResults:
      break;
  }
  return "unknown result code";
}

const char* setoGetLastError(setoComm_t comm) {
  if (comm == nullptr || seto::process_was_forked() || !is_alive(comm)) return last_text();
  try {
    seto::Status first = comm->asynchronous_failure();
    if (first.ok()) return last_text();
    last_error().shown = std::move(first);
    return last_error().shown.text().data();
  } catch (...) {
    return last_text();
  }
}

}  // extern "C"
