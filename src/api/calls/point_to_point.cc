#include "src/api/calls/device_calls.h"
#include "src/api/calls/group_calls.h"
#include "src/api/calls/issue.h"
#include "src/api/support/thread_group.h"
#include "src/core/communicator/communicator.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

// Inside a group the call is only queued; an error is then also the group's result.
Status queue(Transfer transfer, std::uint32_t deadline_ms, setoComm_t comm, setoStream_t stream) {
  Result<CallGroup::Target> target = group_target(comm, stream);
  if (!target.ok()) {
    thread_group().calls.add_failure(target.status());
    return target.status();
  }
  thread_group().calls.add(std::move(target).value(), std::move(transfer), deadline_ms);
  return {};
}

setoResult_t transfer(Transfer transfer, setoDataType_t type, setoComm_t comm, setoStream_t stream,
                      const setoCallConfig_t* config) {
  return enter([&]() -> Status {
    const Call call = for_transfer(type, config);
    transfer.type = call.type;
    transfer.tag = call.message_tag;
    transfer.wrong = call.wrong;
    SETO_TRY(check_handle(comm));
    if (comm->settings.gpu != nullptr)
      return issue_on_device(DeviceMessages{comm, stream, call.deadline_ms, call.mark}, std::move(transfer));
    if (group_depth() > 0) return queue(std::move(transfer), call.deadline_ms, comm, stream);
    const CallGuard guard(*comm);
    SETO_ASSIGN(Communicator* const communicator, usable(comm));
    SETO_TRY(refuse_lone_self(transfer, communicator->rank()));
    const TransferCall alone{std::span(&transfer, 1), TransferKind::point_to_point, call.deadline_ms, {}, call.mark};
    if (stream == nullptr) return communicator->run(alone);
    SETO_ASSIGN(const std::shared_ptr<HostStream> host_stream, stream_of(stream));
    return host_stream->enqueue(*communicator, alone);
  });
}

}  // namespace

extern "C" {

setoResult_t setoSendConfig(const void* sendbuff, size_t count, setoDataType_t datatype, int peer, setoComm_t comm,
                            setoStream_t stream, const setoCallConfig_t* config) {
  Transfer call;
  call.direction = LocalTransfer::Direction::send;
  call.peer = peer;
  call.source = sendbuff;
  call.count = count;
  return transfer(std::move(call), datatype, comm, stream, config);
}

setoResult_t setoRecvConfig(void* recvbuff, size_t count, setoDataType_t datatype, int peer, setoComm_t comm, setoStream_t stream,
                            const setoCallConfig_t* config) {
  Transfer call;
  call.direction = LocalTransfer::Direction::receive;
  call.peer = peer;
  call.target = recvbuff;
  call.count = count;
  return transfer(std::move(call), datatype, comm, stream, config);
}

setoResult_t setoSend(const void* sendbuff, size_t count, setoDataType_t datatype, int peer, setoComm_t comm,
                      setoStream_t stream) {
  return setoSendConfig(sendbuff, count, datatype, peer, comm, stream, nullptr);
}

setoResult_t setoRecv(void* recvbuff, size_t count, setoDataType_t datatype, int peer, setoComm_t comm, setoStream_t stream) {
  return setoRecvConfig(recvbuff, count, datatype, peer, comm, stream, nullptr);
}

setoResult_t setoRecvAnyConfig(void* recvbuff, size_t count, setoDataType_t datatype, int* source, setoComm_t comm,
                               setoStream_t stream, const setoCallConfig_t* config) {
  return enter([&]() -> Status {
    const Call common = for_transfer(datatype, config);
    SETO_TRY(check_handle(comm));
    if (source == nullptr) return null_argument("source");
    SETO_TRY(refuse_on_device(*comm, "setoRecvAny"));
    if (group_depth() > 0) return failure(Code::invalid_usage, "a receive from any rank cannot be part of a group");
    if (comm->ranks == 1) return failure(Code::invalid_usage, "there is no other rank that could send a message");
    ReceiveAnyCall call{{}, source, common.deadline_ms, common.mark};
    call.transfer.direction = LocalTransfer::Direction::receive;
    call.transfer.target = recvbuff;
    call.transfer.count = count;
    call.transfer.type = common.type;
    call.transfer.tag = common.message_tag;
    call.transfer.wrong = common.wrong;
    SETO_TRY(check(call.transfer, comm->ranks));
    const CallGuard guard(*comm);
    SETO_ASSIGN(Communicator* const communicator, usable(comm));
    if (stream == nullptr) return communicator->run(call);
    SETO_ASSIGN(const std::shared_ptr<HostStream> host_stream, stream_of(stream));
    return host_stream->enqueue(*communicator, call);
  });
}

setoResult_t setoRecvAny(void* recvbuff, size_t count, setoDataType_t datatype, int* source, setoComm_t comm,
                         setoStream_t stream) {
  return setoRecvAnyConfig(recvbuff, count, datatype, source, comm, stream, nullptr);
}

}  // extern "C"
