#include "src/api/handles.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

struct Parts {
  const size_t* counts;
  const size_t* displacements;  // null: one after another
};

Status check_parts(const Parts& parts, const char* name) { return parts.counts == nullptr ? null_argument(name) : Status(); }

// Calls with each part that holds something: peer, offset in elements, count.
template <class Each>
setoResult_t for_each(const Parts& parts, int ranks, const Each& each) {
  size_t next = 0;
  setoResult_t first = setoSuccess;
  for (int peer = 0; peer < ranks; ++peer) {
    const size_t count = parts.counts[peer];
    const size_t offset = parts.displacements != nullptr ? parts.displacements[peer] : next;
    next += count;
    if (count == 0) continue;
    const setoResult_t result = each(peer, offset, count);
    if (first == setoSuccess) first = result;
  }
  return first;
}

}  // namespace

extern "C" {

// A group of sends and receives: what each rank sends is its own business, so there is no plan that all ranks share.
setoResult_t setoAllToAllvConfig(const void* sendbuff, const size_t sendcounts[], const size_t sdispls[], void* recvbuff,
                                 const size_t recvcounts[], const size_t rdispls[], setoDataType_t datatype, setoComm_t comm,
                                 setoStream_t stream, const setoCallConfig_t* config) {
  const Parts out{sendcounts, sdispls};
  const Parts in{recvcounts, rdispls};
  const setoResult_t checked = enter([&]() -> Status {
    SETO_TRY(check_handle(comm));
    SETO_TRY(check_parts(out, "sendcounts"));
    SETO_TRY(check_parts(in, "recvcounts"));
    if (static_cast<unsigned>(datatype) >= setoNumTypes) return failure(Code::invalid_argument, "datatype: %d is none", static_cast<int>(datatype));
    return {};
  });
  if (checked != setoSuccess) return checked;
  const size_t element = size_of(static_cast<DataType>(datatype));
  const auto* source = static_cast<const std::byte*>(sendbuff);
  auto* target = static_cast<std::byte*>(recvbuff);
  const int ranks = comm->ranks;
  const setoResult_t started = setoGroupStart();
  if (started != setoSuccess) return started;
  const setoResult_t sent = for_each(out, ranks, [&](int peer, size_t offset, size_t count) {
    return setoSendConfig(source + offset * element, count, datatype, peer, comm, stream, config);
  });
  const setoResult_t received = for_each(in, ranks, [&](int peer, size_t offset, size_t count) {
    return setoRecvConfig(target + offset * element, count, datatype, peer, comm, stream, config);
  });
  const setoResult_t ended = setoGroupEnd();
  return sent != setoSuccess ? sent : received != setoSuccess ? received : ended;
}

}  // extern "C"
