#include "src/api/support/handles.h"

// Functions that are declared but not implemented: each returns an error that names what is missing.

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

setoResult_t missing(const char* what) {
  return enter([&] { return failure(Code::invalid_usage, "%s not in this version", what); });
}

setoResult_t missing(setoComm_t comm, const char* what) {
  return enter([&]() -> Status {
    SETO_TRY(check_handle(comm));
    return failure(Code::invalid_usage, "%s not in this version", what);
  });
}

}  // namespace

extern "C" {

setoResult_t setoCommShrink(setoComm_t comm, int*, int, setoComm_t* newcomm, setoConfig_t*, int) {
  if (newcomm != nullptr) *newcomm = nullptr;
  return missing(comm, "setoCommShrink: agreement of the survivors is");
}

setoResult_t setoCommGetUniqueId(setoComm_t comm, setoUniqueId*) {
  return missing(comm, "setoCommGetUniqueId: joining new ranks is");
}

setoResult_t setoCommGrow(setoComm_t, int, const setoUniqueId*, int, setoComm_t* newcomm, setoConfig_t*) {
  if (newcomm != nullptr) *newcomm = nullptr;
  return missing("setoCommGrow: joining new ranks is");
}

setoResult_t setoCommRevoke(setoComm_t comm, int) {
  return missing(comm, "setoCommRevoke: ending operations on every rank is (setoCommAbort ends this rank's)");
}

}  // extern "C"
