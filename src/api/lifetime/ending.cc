#include <utility>

#include "src/api/lifetime/init_support.h"
#include "src/core/communicator/communicator.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

// The handle is invalid from here on. Its memory lives as long as a call, or a thread that does not end, uses it. Background work
// ends first: only that could make the communicator usable again.
void free_handle(setoComm& comm) {
  live_communicators.remove(&comm);
  const bool ended = comm.join_work();
  comm.registered.clear();
  if (comm.close() && ended) std::exchange(comm.handle, nullptr).reset();
}

// Ends all operations under way, here and then on the other ranks.
void give_up(setoComm& comm, const char* call) {
  comm.given_up.store(true, std::memory_order_release);
  if (const std::shared_ptr<Communicator> communicator = comm.communicator(); communicator != nullptr)
    communicator->fail(failure(Code::aborted, "%s was called on rank %d", call, comm.rank), comm.rank);
}

Status destroy(setoComm& comm) {
  Status status;
  (void)comm.await_finalize();
  const std::shared_ptr<Communicator> communicator = comm.communicator();
  if (comm.working())
    give_up(comm, "setoCommDestroy");
  else if (communicator != nullptr && !communicator->failed())
    status = comm.drain();
  free_handle(comm);
  return status;
}

void abort(setoComm& comm) {
  give_up(comm, "setoCommAbort");
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
