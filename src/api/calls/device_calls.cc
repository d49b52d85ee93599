#include "src/api/calls/device_calls.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <iterator>
#include <new>
#include <utility>

#include "src/api/support/thread_group.h"
#include "src/core/device_memory/device_communicator.h"
#include "src/core/host_stream/stream_table.h"

namespace seto::api {
namespace {

// A call until the end of its group, with its own copies of what it points at.
struct Queued {
  std::shared_ptr<setoComm> comm;  // keeps the memory of the handle
  Call call;
  setoStream_t stream = nullptr;
  alignas(8) unsigned char scalar[8] = {};
  std::vector<std::uint64_t> counts, displacements;
};

// The sends and receives of one communicator.
struct QueuedMessages {
  std::shared_ptr<setoComm> comm;
  TransferBatch batch;
  std::vector<setoStream_t> streams;  // that they name, in the order of the first calls
  CallerMark mark;                    // of the first one
};

struct Group {
  std::vector<Queued> calls;
  std::vector<QueuedMessages> messages;
  Status failure;
};

Group& group() {
  thread_local Group only;
  return only;
}

void keep_first(Status& first, Status status) {
  if (first.ok()) first = std::move(status);
}

// The number of a host stream is no address, and the driver would read what it points at.
Result<cuda::Stream> cuda_stream_of(setoStream_t stream) {
  if (stream != nullptr && StreamTable::of_process().find(std::bit_cast<StreamTable::Handle>(stream)).ok())
    return failure(Code::invalid_argument,
                   "stream: it is a host stream, but this communicator works on device memory: pass a "
                   "stream of CUDA");
  return std::bit_cast<cuda::Stream>(stream);
}

Status issue(setoComm& comm, const TransferBatch& batch, const std::vector<setoStream_t>& streams, const CallerMark& mark,
             bool is_alone) {
  const CallGuard guard(comm);
  if (comm.usable.load(std::memory_order_acquire) == nullptr) return comm.why_unusable();
  TransferRequest request{batch};
  request.mark = mark;
  request.is_alone = is_alone;
  SETO_ASSIGN(request.stream, cuda_stream_of(streams.front()));
  for (std::size_t i = 1; i < streams.size(); ++i) {
    SETO_ASSIGN(request.joined.emplace_back(), cuda_stream_of(streams[i]));
  }
  return comm.device->enqueue(request);
}

// Collectives of one communicator on one stream, of which some may share a kernel.
struct Batch {
  std::shared_ptr<setoComm> comm;
  setoStream_t stream = nullptr;
  std::vector<Call> calls;
};

// Whether the order of the two counts: also on different streams of a GPU, where kernels that do not fit beside each other would
// wait for room in an order that other ranks need not have.
bool is_ordered(const Batch& batch, const Queued& queued) {
  return batch.comm == queued.comm || batch.comm->settings.gpu->device() == queued.comm->settings.gpu->device();
}

// A call joins an earlier batch of its communicator and stream only across batches between which and the call there is no order.
Batch& batch_for(std::vector<Batch>& batches, const Queued& queued) {
  for (auto batch = batches.rbegin(); batch != batches.rend(); ++batch) {
    if (batch->comm == queued.comm && batch->stream == queued.stream) return *batch;
    if (is_ordered(*batch, queued)) break;
  }
  return batches.emplace_back(Batch{queued.comm, queued.stream, {}});
}

Status launch(const Batch& batch) {
  const CallGuard guard(*batch.comm);
  if (batch.comm->usable.load(std::memory_order_acquire) == nullptr) return batch.comm->why_unusable();
  SETO_ASSIGN(const cuda::Stream stream, cuda_stream_of(batch.stream));
  return batch.comm->device->enqueue(batch.calls, stream);
}

template <class Add>
Status queue(const DeviceMessages& call, Add add) {
  const CallGuard guard(*call.comm);
  if (call.comm->usable.load(std::memory_order_acquire) == nullptr) {
    keep_first(group().failure, call.comm->why_unusable());
    return call.comm->why_unusable();
  }
  std::vector<QueuedMessages>& all = group().messages;
  auto queued = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.comm.get() == call.comm; });
  if (queued == all.end()) {
    all.push_back({call.comm->shared_from_this(), {}, {}, call.mark});
    queued = std::prev(all.end());
  }
  const bool is_new = std::find(queued->streams.begin(), queued->streams.end(), call.stream) == queued->streams.end();
  if (is_new) queued->streams.reserve(queued->streams.size() + 1);
  add(queued->batch);
  if (is_new) queued->streams.push_back(call.stream);
  return {};
}

}  // namespace

Status issue_on_device(setoComm& comm, const Call& call, setoStream_t stream) {
  SETO_ASSIGN(const cuda::Stream cuda_stream, cuda_stream_of(stream));
  return comm.device->enqueue({&call, 1}, cuda_stream, true);
}

Status issue_on_device(const DeviceMessages& call, Transfer transfer) {
  if (group_depth() > 0) return queue(call, [&](TransferBatch& batch) { batch.add(std::move(transfer), call.deadline_ms); });
  SETO_TRY(refuse_lone_self(transfer, call.comm->rank));
  TransferBatch batch;
  batch.add(std::move(transfer), call.deadline_ms);
  return issue(*call.comm, batch, {call.stream}, call.mark, true);
}

Status issue_on_device(const DeviceMessages& call, std::vector<Transfer> exchange) {
  if (group_depth() > 0) return queue(call, [&](TransferBatch& batch) { batch.add(std::move(exchange), call.deadline_ms); });
  TransferBatch batch;
  batch.add(std::move(exchange), call.deadline_ms);
  return issue(*call.comm, batch, {call.stream}, call.mark, true);
}

Status queue_on_device(setoComm_t comm, const Call& call, setoStream_t stream) {
  const CallGuard guard(*comm);
  if (comm->usable.load(std::memory_order_acquire) == nullptr) {
    keep_first(group().failure, comm->why_unusable());
    return comm->why_unusable();
  }
  Queued queued;
  queued.comm = comm->shared_from_this();
  queued.call = call;
  queued.stream = stream;
  queued.counts.assign(call.counts.begin(), call.counts.end());
  queued.displacements.assign(call.displacements.begin(), call.displacements.end());
  if (call.scalar != nullptr) std::memcpy(queued.scalar, call.scalar, scalar_size(call.type));
  group().calls.push_back(std::move(queued));
  return {};
}

// After a failure the others are still launched: ranks that did not fail wait for them. What needs memory comes first, so that
// without it nothing is launched, or a communicator knows that it has failed.
Status launch_queued() {
  Status first = std::exchange(group().failure, Status());
  const std::vector<QueuedMessages> messages = std::exchange(group().messages, {});
  std::vector<Queued> calls = std::exchange(group().calls, {});
  std::vector<Batch> batches;
  for (Queued& queued : calls) {
    Call& call = batch_for(batches, queued).calls.emplace_back(queued.call);
    if (call.scalar != nullptr) call.scalar = queued.scalar;
    call.counts = queued.counts;
    call.displacements = queued.displacements;
  }
  std::exception_ptr missing;  // memory
  const auto guarded = [&](setoComm& comm, const auto& launch_one) {
    try {
      keep_first(first, launch_one());
    } catch (const std::bad_alloc&) {
      missing = std::current_exception();
      const CallGuard guard(comm);
      if (comm.usable.load(std::memory_order_acquire) != nullptr) comm.device->end_without_memory();
    }
  };
  for (const QueuedMessages& queued : messages)
    guarded(*queued.comm, [&] { return issue(*queued.comm, queued.batch, queued.streams, queued.mark, false); });
  for (const Batch& batch : batches) guarded(*batch.comm, [&] { return launch(batch); });
  if (missing != nullptr && first.ok()) std::rethrow_exception(missing);
  return first;
}

bool has_queued() { return !group().calls.empty() || !group().messages.empty(); }

void drop_queued() { group() = {}; }

Status refuse_on_device(const setoComm& comm, const char* what) {
  if (comm.settings.gpu == nullptr) return {};
  return failure(Code::invalid_usage, "%s: not on device memory in this version; use a communicator on host memory", what);
}

}  // namespace seto::api
