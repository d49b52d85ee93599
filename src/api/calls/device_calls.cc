#include "src/api/calls/device_calls.h"

#include <bit>
#include <cstring>
#include <utility>

#include "src/core/device_memory/device_communicator.h"
#include "src/core/host_stream/stream_table.h"

namespace seto::api {
namespace {

// A call until the end of its group, with its own copy of the scalar.
struct Queued {
  std::shared_ptr<setoComm> comm;  // keeps the memory of the handle
  Call call;
  setoStream_t stream = nullptr;
  alignas(8) unsigned char scalar[8] = {};
};

struct Group {
  std::vector<Queued> calls;
  Status failure;
};

Group& group() {
  thread_local Group only;
  return only;
}

void keep_first(Status& first, Status status) {
  if (first.ok()) first = std::move(status);
}

Status launch(Queued& queued) {
  const CallGuard guard(*queued.comm);
  if (queued.comm->usable.load(std::memory_order_acquire) == nullptr) return queued.comm->why_unusable();
  if (queued.call.scalar != nullptr) queued.call.scalar = queued.scalar;
  return issue_on_device(*queued.comm, queued.call, queued.stream);
}

}  // namespace

// The number of a host stream is no address, and the driver would read what it points at.
Status issue_on_device(setoComm& comm, const Call& call, setoStream_t stream) {
  if (stream != nullptr && StreamTable::of_process().find(std::bit_cast<StreamTable::Handle>(stream)).ok())
    return failure(Code::invalid_argument,
                   "stream: it is a host stream, but this communicator works on device memory: pass a "
                   "stream of CUDA");
  return comm.device->enqueue(call, std::bit_cast<cuda::Stream>(stream));
}

Status queue_on_device(setoComm_t comm, const Call& call, setoStream_t stream) {
  const CallGuard guard(*comm);
  if (comm->usable.load(std::memory_order_acquire) == nullptr) {
    keep_first(group().failure, comm->why_unusable());
    return comm->why_unusable();
  }
  if (!call.counts.empty()) {
    Status refused =
        failure(Code::invalid_usage, "recvcounts: parts of different lengths are not on device memory in this version");
    keep_first(group().failure, refused);
    return refused;
  }
  Queued& queued = group().calls.emplace_back();
  queued.comm = comm->shared_from_this();
  queued.call = call;
  queued.stream = stream;
  if (call.scalar != nullptr) std::memcpy(queued.scalar, call.scalar, scalar_size(call.type));
  return {};
}

// After a failure the others are still launched: ranks that did not fail wait for them.
Status launch_queued() {
  Status first = std::exchange(group().failure, Status());
  for (Queued& queued : std::exchange(group().calls, {})) keep_first(first, launch(queued));
  return first;
}

bool has_queued() { return !group().calls.empty(); }

void drop_queued() { group() = {}; }

Status refuse_on_device(const setoComm& comm, const char* what) {
  if (comm.settings.gpu == nullptr) return {};
  return failure(Code::invalid_usage, "%s: not on device memory in this version; use a communicator on host memory", what);
}

}  // namespace seto::api
