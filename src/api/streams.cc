#include "src/api/handles.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {
setoResult_t missing() {
  return enter([] { return failure(Code::invalid_usage, "host streams: not in this build"); });
}
}  // namespace

extern "C" {
setoResult_t setoStreamCreate(setoStream_t*) { return missing(); }
setoResult_t setoStreamDestroy(setoStream_t) { return missing(); }
setoResult_t setoStreamPosition(setoStream_t, uint64_t*) { return missing(); }
setoResult_t setoStreamWait(setoStream_t, uint64_t, uint32_t) { return missing(); }
setoResult_t setoStreamPoll(setoStream_t, uint64_t) { return missing(); }
setoResult_t setoStreamWaitFor(setoStream_t, setoStream_t, uint64_t) { return missing(); }
setoResult_t setoLaunchHostFunction(setoStream_t, setoHostFunction_t, void*) { return missing(); }
}
