#include "src/api/support/handles.h"
#include "src/core/call/ids.h"
#include "src/core/device_memory/gpu_context.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

setoResult_t give(setoComm_t comm, int* where, const char* name, int (*value)(const setoComm&)) {
  return enter([&]() -> Status {
    SETO_TRY(check_handle(comm));
    if (where == nullptr) return null_argument(name);
    *where = value(*comm);
    return {};
  });
}

setoResult_t give_id(const char* name, int* id, int (*find)(std::string_view), std::string (*known)(std::string_view)) {
  return enter([&]() -> Status {
    if (name == nullptr) return null_argument("name");
    if (id == nullptr) return null_argument("id");
    *id = find(name);
    if (*id == 0) return failure(Code::invalid_argument, "name: '%.64s' is unknown; the names are %s", name, known(name).c_str());
    return {};
  });
}

}  // namespace

extern "C" {

setoResult_t setoCommGetAsyncError(setoComm_t comm, setoResult_t* asyncError) {
  return enter([&]() -> Status {
    SETO_TRY(check_handle(comm));
    if (asyncError == nullptr) return null_argument("asyncError");
    comm->check_lost_peers();
    *asyncError = comm->working() ? setoInProgress : result_of(comm->asynchronous_failure().code());
    return {};
  });
}

setoResult_t setoCommCount(const setoComm_t comm, int* count) {
  return give(comm, count, "count", [](const setoComm& self) { return self.ranks; });
}

setoResult_t setoCommUserRank(const setoComm_t comm, int* rank) {
  return give(comm, rank, "rank", [](const setoComm& self) { return static_cast<int>(self.rank); });
}

setoResult_t setoCommCuDevice(const setoComm_t comm, int* device) {
  return give(comm, device, "device",
              [](const setoComm& self) { return self.settings.gpu == nullptr ? -1 : self.settings.gpu->device(); });
}

setoResult_t setoCodecId(const char* name, int* id) { return give_id(name, id, codec_id, known_codecs); }
setoResult_t setoAlgorithmId(const char* name, int* id) { return give_id(name, id, algorithm_id, known_algorithms); }

}  // extern "C"
