#include "src/api/handles.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {
setoResult_t missing() {
  return enter([] { return failure(Code::invalid_usage, "send and receive: not in this build"); });
}
}  // namespace

extern "C" {
setoResult_t setoSend(const void*, size_t, setoDataType_t, int, setoComm_t, setoStream_t) { return missing(); }
setoResult_t setoRecv(void*, size_t, setoDataType_t, int, setoComm_t, setoStream_t) { return missing(); }
setoResult_t setoSendConfig(const void*, size_t, setoDataType_t, int, setoComm_t, setoStream_t, const setoCallConfig_t*) { return missing(); }
setoResult_t setoRecvConfig(void*, size_t, setoDataType_t, int, setoComm_t, setoStream_t, const setoCallConfig_t*) { return missing(); }
}
