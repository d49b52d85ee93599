#include <type_traits>

#include "src/api/calls/device_calls.h"
#include "src/api/calls/group_calls.h"
#include "src/api/calls/issue.h"
#include "src/api/support/thread_group.h"
#include "src/core/communicator/communicator.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

static_assert(std::is_same_v<size_t, std::uint64_t>, "arrays of counts are handed on as they are");

std::span<const std::uint64_t> view(const size_t* values, int ranks) {
  return values == nullptr ? std::span<const std::uint64_t>() : std::span(values, static_cast<std::size_t>(ranks));
}

Status exchange(const ExchangeCall& call, const Call& common, setoComm_t comm, setoStream_t stream) {
  std::vector<Transfer> transfers = transfers_of(call, comm->ranks);
  if (comm->settings.gpu != nullptr)
    return issue_on_device(DeviceMessages{comm, stream, common.deadline_ms, common.mark}, std::move(transfers));
  if (group_depth() > 0) {
    Result<CallGroup::Target> target = group_target(comm, stream);
    if (target.ok())
      thread_group().calls.add(std::move(target).value(), std::move(transfers), common.deadline_ms);
    else
      thread_group().calls.add_failure(target.status());
    return target.status();
  }
  const CallGuard guard(*comm);
  SETO_ASSIGN(Communicator* const communicator, usable(comm));
  const TransferCall all{transfers, TransferKind::all_to_all_v, common.deadline_ms, {}, common.mark};
  if (stream == nullptr) return communicator->run(all);
  SETO_ASSIGN(const std::shared_ptr<HostStream> host_stream, stream_of(stream));
  return host_stream->enqueue(*communicator, all);
}

}  // namespace

extern "C" {

// Each rank has its own counts, so there is no plan that all ranks share: the exchange is a set of sends and receives, as in a
// group.
setoResult_t setoAllToAllvConfig(const void* sendbuff, const size_t sendcounts[], const size_t sdispls[], void* recvbuff,
                                 const size_t recvcounts[], const size_t rdispls[], setoDataType_t datatype, setoComm_t comm,
                                 setoStream_t stream, const setoCallConfig_t* config) {
  return enter([&]() -> Status {
    SETO_TRY(check_handle(comm));
    if (sendcounts == nullptr) return null_argument("sendcounts");
    if (recvcounts == nullptr) return null_argument("recvcounts");
    const Call common = for_transfer(datatype, config);
    const int ranks = comm->ranks;
    const ExchangeCall call{sendbuff,
                            recvbuff,
                            {view(sendcounts, ranks), view(sdispls, ranks)},
                            {view(recvcounts, ranks), view(rdispls, ranks)},
                            common.type,
                            common.wrong};
    return exchange(call, common, comm, stream);
  });
}

}  // extern "C"
