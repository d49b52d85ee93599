#include "src/api/calls/issue.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

Call call_of(Collective collective, const void* input, void* output, std::size_t count, setoDataType_t type) {
  Call call;
  call.collective = collective;
  call.input = input;
  call.output = output;
  call.count = count;
  set_type(call, type);
  return call;
}

}  // namespace

extern "C" {

setoResult_t setoAllReduceConfig(const void* sendbuff, void* recvbuff, size_t count, setoDataType_t datatype, setoRedOp_t op,
                                 setoComm_t comm, setoStream_t stream, const setoCallConfig_t* config) {
  Call call = call_of(Collective::all_reduce, sendbuff, recvbuff, count, datatype);
  set_op(call, op, comm);
  return issue(comm, call, stream, config);
}

setoResult_t setoReduceConfig(const void* sendbuff, void* recvbuff, size_t count, setoDataType_t datatype, setoRedOp_t op,
                              int root, setoComm_t comm, setoStream_t stream, const setoCallConfig_t* config) {
  Call call = call_of(Collective::reduce, sendbuff, recvbuff, count, datatype);
  set_op(call, op, comm);
  call.root = root;
  return issue(comm, call, stream, config);
}

setoResult_t setoBroadcastConfig(const void* sendbuff, void* recvbuff, size_t count, setoDataType_t datatype, int root,
                                 setoComm_t comm, setoStream_t stream, const setoCallConfig_t* config) {
  Call call = call_of(Collective::broadcast, sendbuff, recvbuff, count, datatype);
  call.root = root;
  return issue(comm, call, stream, config);
}

setoResult_t setoReduceScatterConfig(const void* sendbuff, void* recvbuff, size_t recvcount, setoDataType_t datatype,
                                     setoRedOp_t op, setoComm_t comm, setoStream_t stream, const setoCallConfig_t* config) {
  Call call = call_of(Collective::reduce_scatter, sendbuff, recvbuff, recvcount, datatype);
  set_op(call, op, comm);
  return issue(comm, call, stream, config);
}

setoResult_t setoAllGatherConfig(const void* sendbuff, void* recvbuff, size_t sendcount, setoDataType_t datatype, setoComm_t comm,
                                 setoStream_t stream, const setoCallConfig_t* config) {
  return issue(comm, call_of(Collective::all_gather, sendbuff, recvbuff, sendcount, datatype), stream, config);
}

setoResult_t setoAlltoAllConfig(const void* sendbuff, void* recvbuff, size_t count, setoDataType_t datatype, setoComm_t comm,
                                setoStream_t stream, const setoCallConfig_t* config) {
  return issue(comm, call_of(Collective::all_to_all, sendbuff, recvbuff, count, datatype), stream, config);
}

setoResult_t setoGatherConfig(const void* sendbuff, void* recvbuff, size_t count, setoDataType_t datatype, int root,
                              setoComm_t comm, setoStream_t stream, const setoCallConfig_t* config) {
  Call call = call_of(Collective::gather, sendbuff, recvbuff, count, datatype);
  call.root = root;
  return issue(comm, call, stream, config);
}

setoResult_t setoScatterConfig(const void* sendbuff, void* recvbuff, size_t count, setoDataType_t datatype, int root,
                               setoComm_t comm, setoStream_t stream, const setoCallConfig_t* config) {
  Call call = call_of(Collective::scatter, sendbuff, recvbuff, count, datatype);
  call.root = root;
  return issue(comm, call, stream, config);
}

setoResult_t setoBarrierConfig(setoComm_t comm, setoStream_t stream, const setoCallConfig_t* config) {
  Call call;
  call.collective = Collective::barrier;
  return issue(comm, call, stream, config);
}

setoResult_t setoBcast(void* buff, size_t count, setoDataType_t datatype, int root, setoComm_t comm, setoStream_t stream) {
  return setoBroadcastConfig(buff, buff, count, datatype, root, comm, stream, nullptr);
}

}  // extern "C"
