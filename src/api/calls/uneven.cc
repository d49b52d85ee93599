#include <span>
#include <type_traits>

#include "src/api/calls/issue.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

static_assert(std::is_same_v<size_t, std::uint64_t>, "arrays of counts are handed on as they are");

std::span<const std::uint64_t> view(const size_t* values, setoComm_t comm) {
  return values == nullptr || !is_alive(comm) ? std::span<const std::uint64_t>()
                                              : std::span(values, static_cast<std::size_t>(comm->ranks));
}

// `count` is the sum of all counts and equal on every rank, so that an error text states how much the call moves.
void set_counts(Call& call, const size_t* counts, setoComm_t comm) {
  if (counts == nullptr && call.wrong.ok()) call.wrong = null_argument("recvcounts");
  call.counts = view(counts, comm);
  for (const std::uint64_t count : call.counts) call.count += count;
}

Status check_own(const Call& call, size_t sendcount, setoComm_t comm) {
  if (call.counts.empty() || call.counts[static_cast<std::size_t>(comm->rank)] == sendcount) return {};
  return failure(Code::invalid_argument, "sendcount: %zu, but recvcounts[%d] is %zu", sendcount, comm->rank,
                 static_cast<size_t>(call.counts[static_cast<std::size_t>(comm->rank)]));
}

}  // namespace

extern "C" {

setoResult_t setoAllGathervConfig(const void* sendbuff, size_t sendcount, void* recvbuff, const size_t recvcounts[],
                                  const size_t rdispls[], setoDataType_t datatype, setoComm_t comm, setoStream_t stream,
                                  const setoCallConfig_t* config) {
  Call call;
  call.collective = Collective::all_gather;
  call.input = sendbuff;
  call.output = recvbuff;
  set_type(call, datatype);
  set_counts(call, recvcounts, comm);
  call.displacements = view(rdispls, comm);
  if (call.wrong.ok()) call.wrong = check_own(call, sendcount, comm);
  return issue(comm, call, stream, config);
}

setoResult_t setoReduceScattervConfig(const void* sendbuff, void* recvbuff, const size_t recvcounts[], setoDataType_t datatype,
                                      setoRedOp_t op, setoComm_t comm, setoStream_t stream, const setoCallConfig_t* config) {
  Call call;
  call.collective = Collective::reduce_scatter;
  call.input = sendbuff;
  call.output = recvbuff;
  set_type(call, datatype);
  set_op(call, op, comm);
  set_counts(call, recvcounts, comm);
  return issue(comm, call, stream, config);
}

}  // extern "C"
