#include "transports/rdma/verbs/librdmacm_abi.h"

#include <gtest/gtest.h>

#if __has_include(<rdma/rdma_cma.h>)
#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>
#define SETO_HAS_MANAGER_HEADER 1
#endif

namespace seto::rdma {
namespace {

#ifdef SETO_HAS_MANAGER_HEADER

#define SAME_PLACE(own, own_member, its, its_member)                                             \
  EXPECT_EQ(offsetof(abi::own, own_member), offsetof(its, its_member)) << #its "::" #its_member; \
  EXPECT_EQ(sizeof(abi::own::own_member), sizeof(its::its_member)) << #its "::" #its_member

TEST(LibrdmacmAbi, ObjectsAreLaidOutAsInTheHeader) {
  SAME_PLACE(ManagerChannel, descriptor, rdma_event_channel, fd);
  SAME_PLACE(ManagerId, device, rdma_cm_id, verbs);
  SAME_PLACE(ManagerId, route, rdma_cm_id, route);
  SAME_PLACE(ManagerId, port_space, rdma_cm_id, ps);
  SAME_PLACE(ManagerId, port, rdma_cm_id, port_num);
  SAME_PLACE(ManagerEvent, id, rdma_cm_event, id);
  SAME_PLACE(ManagerEvent, kind, rdma_cm_event, event);
  SAME_PLACE(ManagerEvent, status, rdma_cm_event, status);
  SAME_PLACE(ManagerEvent, terms, rdma_cm_event, param.conn);
  EXPECT_EQ(sizeof(abi::ManagerTerms), sizeof(rdma_conn_param));
  SAME_PLACE(ManagerTerms, private_data, rdma_conn_param, private_data);
  SAME_PLACE(ManagerTerms, private_size, rdma_conn_param, private_data_len);
  SAME_PLACE(ManagerTerms, most_reads_of_peer, rdma_conn_param, responder_resources);
  SAME_PLACE(ManagerTerms, most_reads, rdma_conn_param, initiator_depth);
  SAME_PLACE(ManagerTerms, retry_count, rdma_conn_param, retry_count);
  SAME_PLACE(ManagerTerms, rnr_retry_count, rdma_conn_param, rnr_retry_count);
  SAME_PLACE(ManagerTerms, queue_pair, rdma_conn_param, qp_num);
  EXPECT_EQ(sizeof(abi::InfinibandAddress), sizeof(sockaddr_ib));
  SAME_PLACE(InfinibandAddress, family, sockaddr_ib, sib_family);
  SAME_PLACE(InfinibandAddress, pkey, sockaddr_ib, sib_pkey);
  SAME_PLACE(InfinibandAddress, gid, sockaddr_ib, sib_addr);
  SAME_PLACE(InfinibandAddress, service, sockaddr_ib, sib_sid);
  SAME_PLACE(InfinibandAddress, service_mask, sockaddr_ib, sib_sid_mask);
}

TEST(LibrdmacmAbi, NumbersAreThoseOfTheHeader) {
  EXPECT_EQ(+abi::kAddressResolved, +RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(+abi::kAddressError, +RDMA_CM_EVENT_ADDR_ERROR);
  EXPECT_EQ(+abi::kRouteResolved, +RDMA_CM_EVENT_ROUTE_RESOLVED);
  EXPECT_EQ(+abi::kRouteError, +RDMA_CM_EVENT_ROUTE_ERROR);
  EXPECT_EQ(+abi::kConnectRequest, +RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(+abi::kConnectResponse, +RDMA_CM_EVENT_CONNECT_RESPONSE);
  EXPECT_EQ(+abi::kConnectError, +RDMA_CM_EVENT_CONNECT_ERROR);
  EXPECT_EQ(+abi::kUnreachable, +RDMA_CM_EVENT_UNREACHABLE);
  EXPECT_EQ(+abi::kRejected, +RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(+abi::kDeviceRemoval, +RDMA_CM_EVENT_DEVICE_REMOVAL);
  EXPECT_EQ(abi::kStreamPorts, static_cast<unsigned>(RDMA_PS_TCP));
  EXPECT_EQ(std::uint64_t{abi::kStreamPorts} << 16, RDMA_IB_IP_PS_TCP);
  EXPECT_EQ(abi::kOptionOfId, static_cast<int>(RDMA_OPTION_ID));
  EXPECT_EQ(abi::kOptionTypeOfService, static_cast<int>(RDMA_OPTION_ID_TOS));
  EXPECT_EQ(abi::kInfinibandFamily, AF_IB);
}

#else

TEST(LibrdmacmAbi, IsThatOfTheHeader) { GTEST_SKIP() << "skipped: needs the header of librdmacm (Debian: librdmacm-dev)"; }

#endif

}  // namespace
}  // namespace seto::rdma
