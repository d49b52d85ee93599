#include <utility>

#include "src/api/making.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

// The handle is dead from here on; its memory lives as long as a background thread or a call inside uses it.
void free_handle(setoComm& comm) {
  comm.magic.store(0, std::memory_order_release);
  if (comm.close()) std::exchange(comm.handle, nullptr).reset();
}

Status destroy(setoComm& comm) {
  Status status;
  if (!comm.working() && comm.asynchronous_failure().ok()) status = comm.finish();
  free_handle(comm);
  return status;
}

void abort(setoComm& comm) {
  if (const std::shared_ptr<Communicator> communicator = comm.communicator(); communicator != nullptr)
    communicator->fail(failure(Code::aborted, "setoCommAbort was called on rank %d", comm.rank), comm.rank);
  free_handle(comm);
}

}  // namespace

extern "C" {

setoResult_t setoCommFinalize(setoComm_t comm) {
  return enter([&]() -> Status {
    SETO_TRY(check_handle(comm));
    if (comm->usable.load(std::memory_order_acquire) == nullptr) return comm->why_unusable();
    return now_or_at_group_end([share = comm->shared_from_this()] { return share->finalize(); });
  });
}

setoResult_t setoCommDestroy(setoComm_t comm) {
  return enter([&]() -> Status {
    SETO_TRY(check_handle(comm));
    return destroy(*comm);
  });
}

setoResult_t setoCommAbort(setoComm_t comm) {
  return enter([&]() -> Status {
    SETO_TRY(check_handle(comm));
    abort(*comm);
    return {};
  });
}

}  // extern "C"
