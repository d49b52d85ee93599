#include <bit>

#include "src/api/calls/group_calls.h"
#include "src/api/support/handles.h"
#include "src/core/host_stream/stream_table.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

// As stream_of(), but NULL is refused.
Result<std::shared_ptr<HostStream>> named_stream(setoStream_t stream, const char* name) {
  if (stream == nullptr) return null_argument(name);
  return stream_of(stream);
}

}  // namespace

extern "C" {

setoResult_t setoStreamCreate(setoStream_t* stream) {
  return enter([&]() -> Status {
    if (stream == nullptr) return null_argument("stream");
    *stream = nullptr;
    SETO_ASSIGN(const StreamTable::Handle handle, StreamTable::of_process().create());
    *stream = std::bit_cast<setoStream_t>(handle);
    return {};
  });
}

setoResult_t setoStreamDestroy(setoStream_t stream) {
  return enter([&]() -> Status {
    if (stream == nullptr) return null_argument("stream");
    return StreamTable::of_process().destroy(std::bit_cast<StreamTable::Handle>(stream));
  });
}

setoResult_t setoStreamPosition(setoStream_t stream, uint64_t* position) {
  return enter([&]() -> Status {
    if (position == nullptr) return null_argument("position");
    SETO_ASSIGN(const std::shared_ptr<HostStream> host_stream, named_stream(stream, "stream"));
    *position = host_stream->position();
    return {};
  });
}

setoResult_t setoStreamWait(setoStream_t stream, uint64_t position, uint32_t timeoutMs) {
  return enter([&]() -> Status {
    SETO_ASSIGN(const std::shared_ptr<HostStream> host_stream, named_stream(stream, "stream"));
    return host_stream->wait(position, timeoutMs == 0 ? Deadline::never() : Deadline::after_ms(timeoutMs));
  });
}

setoResult_t setoStreamPoll(setoStream_t stream, uint64_t position) {
  return enter([&]() -> Status {
    SETO_ASSIGN(const std::shared_ptr<HostStream> host_stream, named_stream(stream, "stream"));
    return host_stream->poll(position);
  });
}

setoResult_t setoStreamWaitFor(setoStream_t stream, setoStream_t other, uint64_t position) {
  return enter([&]() -> Status {
    SETO_ASSIGN(const std::shared_ptr<HostStream> host_stream, named_stream(stream, "stream"));
    SETO_ASSIGN(const std::shared_ptr<HostStream> awaited, named_stream(other, "other"));
    return host_stream->enqueue_wait(awaited, position);
  });
}

setoResult_t setoLaunchHostFunction(setoStream_t stream, setoHostFunction_t function, void* argument) {
  return enter([&]() -> Status {
    if (function == nullptr) return null_argument("function");
    SETO_ASSIGN(const std::shared_ptr<HostStream> host_stream, named_stream(stream, "stream"));
    host_stream->enqueue_function([function, argument](const Status&) { function(argument); });
    return {};
  });
}

setoResult_t setoLaunchOutcomeFunction(setoStream_t stream, setoOutcomeFunction_t function, void* argument) {
  return enter([&]() -> Status {
    if (function == nullptr) return null_argument("function");
    SETO_ASSIGN(const std::shared_ptr<HostStream> host_stream, named_stream(stream, "stream"));
    host_stream->enqueue_function([function, argument](const Status& before) {
      function(before.ok() ? setoSuccess : result_of(before.code()), before.ok() ? "" : std::string(before.text()).c_str(),
               argument);
    });
    return {};
  });
}

}  // extern "C"
