#include "include/seto/seto.h"

// The plain forms: the ...Config functions without a config.

extern "C" {

setoResult_t setoAllReduce(const void* sendbuff, void* recvbuff, size_t count, setoDataType_t datatype, setoRedOp_t op,
                           setoComm_t comm, setoStream_t stream) {
  return setoAllReduceConfig(sendbuff, recvbuff, count, datatype, op, comm, stream, nullptr);
}

setoResult_t setoReduce(const void* sendbuff, void* recvbuff, size_t count, setoDataType_t datatype, setoRedOp_t op, int root,
                        setoComm_t comm, setoStream_t stream) {
  return setoReduceConfig(sendbuff, recvbuff, count, datatype, op, root, comm, stream, nullptr);
}

setoResult_t setoBroadcast(const void* sendbuff, void* recvbuff, size_t count, setoDataType_t datatype, int root, setoComm_t comm,
                           setoStream_t stream) {
  return setoBroadcastConfig(sendbuff, recvbuff, count, datatype, root, comm, stream, nullptr);
}

setoResult_t setoReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, setoDataType_t datatype, setoRedOp_t op,
                               setoComm_t comm, setoStream_t stream) {
  return setoReduceScatterConfig(sendbuff, recvbuff, recvcount, datatype, op, comm, stream, nullptr);
}

setoResult_t setoAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, setoDataType_t datatype, setoComm_t comm,
                           setoStream_t stream) {
  return setoAllGatherConfig(sendbuff, recvbuff, sendcount, datatype, comm, stream, nullptr);
}

setoResult_t setoAlltoAll(const void* sendbuff, void* recvbuff, size_t count, setoDataType_t datatype, setoComm_t comm,
                          setoStream_t stream) {
  return setoAlltoAllConfig(sendbuff, recvbuff, count, datatype, comm, stream, nullptr);
}

setoResult_t setoGather(const void* sendbuff, void* recvbuff, size_t count, setoDataType_t datatype, int root, setoComm_t comm,
                        setoStream_t stream) {
  return setoGatherConfig(sendbuff, recvbuff, count, datatype, root, comm, stream, nullptr);
}

setoResult_t setoScatter(const void* sendbuff, void* recvbuff, size_t count, setoDataType_t datatype, int root, setoComm_t comm,
                         setoStream_t stream) {
  return setoScatterConfig(sendbuff, recvbuff, count, datatype, root, comm, stream, nullptr);
}

setoResult_t setoBarrier(setoComm_t comm, setoStream_t stream) { return setoBarrierConfig(comm, stream, nullptr); }

setoResult_t setoAllGatherv(const void* sendbuff, size_t sendcount, void* recvbuff, const size_t recvcounts[],
                            const size_t rdispls[], setoDataType_t datatype, setoComm_t comm, setoStream_t stream) {
  return setoAllGathervConfig(sendbuff, sendcount, recvbuff, recvcounts, rdispls, datatype, comm, stream, nullptr);
}

setoResult_t setoReduceScatterv(const void* sendbuff, void* recvbuff, const size_t recvcounts[], setoDataType_t datatype,
                                setoRedOp_t op, setoComm_t comm, setoStream_t stream) {
  return setoReduceScattervConfig(sendbuff, recvbuff, recvcounts, datatype, op, comm, stream, nullptr);
}

setoResult_t setoAllToAllv(const void* sendbuff, const size_t sendcounts[], const size_t sdispls[], void* recvbuff,
                           const size_t recvcounts[], const size_t rdispls[], setoDataType_t datatype, setoComm_t comm,
                           setoStream_t stream) {
  return setoAllToAllvConfig(sendbuff, sendcounts, sdispls, recvbuff, recvcounts, rdispls, datatype, comm, stream, nullptr);
}

}  // extern "C"
