#pragma once

#include <cstdint>

#include "transports/rdma/verbs/libibverbs_abi.h"

// The part of the binary interface of librdmacm (version 1, stable since rdma-core 1) that the library uses, declared by hand:
// libibverbs_abi.h says why. tests/unit/rdma/librdmacm_abi_test.cc compares it with the header where that is installed. The
// library makes identifiers and events; only the members named here are read.
namespace seto::rdma::abi {

struct ManagerChannel {  // rdma_event_channel
  int descriptor;
};

struct ManagerId {  // rdma_cm_id
  Context* device;
  ManagerChannel* channel;
  void* own;
  Pair* pair;
  std::uint8_t route[312];
  std::uint32_t port_space;
  std::uint8_t port;
};

struct ManagerTerms {  // rdma_conn_param
  const void* private_data;
  std::uint8_t private_size;
  std::uint8_t most_reads_of_peer;
  std::uint8_t most_reads;
  std::uint8_t flow_control;
  std::uint8_t retry_count;
  std::uint8_t rnr_retry_count;
  std::uint8_t shared_receives;
  std::uint32_t queue_pair;
};

enum ManagerEventKind : std::uint32_t {
  kAddressResolved = 0,
  kAddressError = 1,
  kRouteResolved = 2,
  kRouteError = 3,
  kConnectRequest = 4,
  kConnectResponse = 5,
  kConnectError = 6,
  kUnreachable = 7,
  kRejected = 8,
  kDeviceRemoval = 11,
};

struct ManagerEvent {  // rdma_cm_event
  ManagerId* id;
  ManagerId* listener;
  std::uint32_t kind;
  int status;
  ManagerTerms terms;
};

inline constexpr std::uint32_t kStreamPorts = 0x0106;    // RDMA_PS_TCP
inline constexpr int kOptionOfId = 0;                    // RDMA_OPTION_ID
inline constexpr int kOptionTypeOfService = 0;           // RDMA_OPTION_ID_TOS
inline constexpr unsigned short kInfinibandFamily = 27;  // AF_IB

struct InfinibandAddress {  // sockaddr_ib
  unsigned short family;
  std::uint16_t pkey;  // this and the following numbers: network byte order
  std::uint32_t flow;
  std::uint8_t gid[16];
  std::uint64_t service;
  std::uint64_t service_mask;
  std::uint64_t scope;
};

}  // namespace seto::rdma::abi
