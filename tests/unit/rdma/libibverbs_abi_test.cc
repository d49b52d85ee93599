#include "transports/rdma/verbs/libibverbs_abi.h"

#include <gtest/gtest.h>

#include <type_traits>

#if __has_include(<infiniband/verbs.h>)
#include <infiniband/verbs.h>
#define SETO_HAS_VERBS_HEADER 1
#endif

namespace seto::rdma {
namespace {

#ifdef SETO_HAS_VERBS_HEADER

#define SAME_SIZE(own, its) EXPECT_EQ(sizeof(abi::own), sizeof(its)) << #its
#define SAME_PLACE(own, own_member, its, its_member)                                             \
  EXPECT_EQ(offsetof(abi::own, own_member), offsetof(its, its_member)) << #its "::" #its_member; \
  EXPECT_EQ(sizeof(abi::own::own_member), sizeof(its::its_member)) << #its "::" #its_member

TEST(LibibverbsAbi, RequestsAndCompletionsAreLaidOutAsInTheHeader) {
  SAME_SIZE(Segment, ibv_sge);
  SAME_SIZE(SendWork, ibv_send_wr);
  SAME_PLACE(SendWork, next, ibv_send_wr, next);
  SAME_PLACE(SendWork, segments, ibv_send_wr, sg_list);
  SAME_PLACE(SendWork, segment_count, ibv_send_wr, num_sge);
  SAME_PLACE(SendWork, opcode, ibv_send_wr, opcode);
  SAME_PLACE(SendWork, flags, ibv_send_wr, send_flags);
  SAME_PLACE(SendWork, immediate, ibv_send_wr, imm_data);
  SAME_PLACE(SendWork, remote_address, ibv_send_wr, wr.rdma.remote_addr);
  SAME_PLACE(SendWork, remote_key, ibv_send_wr, wr.rdma.rkey);
  SAME_SIZE(ReceiveWork, ibv_recv_wr);
  SAME_PLACE(ReceiveWork, segment_count, ibv_recv_wr, num_sge);
  SAME_SIZE(WorkCompletion, ibv_wc);
  SAME_PLACE(WorkCompletion, status, ibv_wc, status);
  SAME_PLACE(WorkCompletion, opcode, ibv_wc, opcode);
  SAME_PLACE(WorkCompletion, vendor_error, ibv_wc, vendor_err);
  SAME_PLACE(WorkCompletion, size, ibv_wc, byte_len);
  SAME_PLACE(WorkCompletion, immediate, ibv_wc, imm_data);
  SAME_PLACE(WorkCompletion, queue_pair, ibv_wc, qp_num);
}

TEST(LibibverbsAbi, ObjectsAreLaidOutAsInTheHeader) {
  SAME_PLACE(Context, operations, ibv_context, ops);
  SAME_SIZE(ContextOperations, ibv_context_ops);
  SAME_PLACE(ContextOperations, poll, ibv_context_ops, poll_cq);
  SAME_PLACE(ContextOperations, request_notification, ibv_context_ops, req_notify_cq);
  SAME_PLACE(ContextOperations, post_send, ibv_context_ops, post_send);
  SAME_PLACE(ContextOperations, post_receive, ibv_context_ops, post_recv);
  SAME_PLACE(Context, event_descriptor, ibv_context, async_fd);
  SAME_SIZE(Region, ibv_mr);
  SAME_PLACE(Region, local_key, ibv_mr, lkey);
  SAME_PLACE(Region, remote_key, ibv_mr, rkey);
  SAME_PLACE(Channel, descriptor, ibv_comp_channel, fd);
  SAME_PLACE(Pair, number, ibv_qp, qp_num);
  SAME_PLACE(Queue, context, ibv_cq, context);
  SAME_SIZE(AsyncEvent, ibv_async_event);
  SAME_PLACE(AsyncEvent, kind, ibv_async_event, event_type);
}

TEST(LibibverbsAbi, AttributesAreLaidOutAsInTheHeader) {
  SAME_SIZE(DeviceAttributes, ibv_device_attr);
  SAME_PLACE(DeviceAttributes, most_work_requests, ibv_device_attr, max_qp_wr);
  SAME_PLACE(DeviceAttributes, most_completions, ibv_device_attr, max_cqe);
  EXPECT_EQ(abi::kPortCountAt, offsetof(ibv_device_attr, phys_port_cnt));
  SAME_SIZE(PortAttributes, ibv_port_attr);
  SAME_PLACE(PortAttributes, active_mtu, ibv_port_attr, active_mtu);
  SAME_PLACE(PortAttributes, gid_count, ibv_port_attr, gid_tbl_len);
  SAME_PLACE(PortAttributes, pkey_count, ibv_port_attr, pkey_tbl_len);
  SAME_PLACE(PortAttributes, lid, ibv_port_attr, lid);
  SAME_PLACE(PortAttributes, active_width, ibv_port_attr, active_width);
  SAME_PLACE(PortAttributes, active_speed, ibv_port_attr, active_speed);
  SAME_PLACE(PortAttributes, link_layer, ibv_port_attr, link_layer);
  SAME_PLACE(PortAttributes, flags, ibv_port_attr, flags);
  SAME_SIZE(GidEntry, ibv_gid_entry);
  SAME_PLACE(GidEntry, index, ibv_gid_entry, gid_index);
  SAME_PLACE(GidEntry, type, ibv_gid_entry, gid_type);
  SAME_PLACE(GidEntry, interface, ibv_gid_entry, ndev_ifindex);
  SAME_SIZE(PairSetup, ibv_qp_init_attr);
  SAME_PLACE(PairSetup, capacity, ibv_qp_init_attr, cap);
  SAME_PLACE(PairSetup, type, ibv_qp_init_attr, qp_type);
  SAME_SIZE(AddressVector, ibv_ah_attr);
  SAME_PLACE(AddressVector, gid_index, ibv_ah_attr, grh.sgid_index);
  SAME_PLACE(AddressVector, hop_limit, ibv_ah_attr, grh.hop_limit);
  SAME_PLACE(AddressVector, traffic_class, ibv_ah_attr, grh.traffic_class);
  SAME_PLACE(AddressVector, remote_lid, ibv_ah_attr, dlid);
  SAME_PLACE(AddressVector, service_level, ibv_ah_attr, sl);
  SAME_PLACE(AddressVector, is_global, ibv_ah_attr, is_global);
  SAME_PLACE(AddressVector, port, ibv_ah_attr, port_num);
  SAME_SIZE(PairAttributes, ibv_qp_attr);
  SAME_PLACE(PairAttributes, mtu, ibv_qp_attr, path_mtu);
  SAME_PLACE(PairAttributes, remote_sequence, ibv_qp_attr, rq_psn);
  SAME_PLACE(PairAttributes, own_sequence, ibv_qp_attr, sq_psn);
  SAME_PLACE(PairAttributes, remote_pair, ibv_qp_attr, dest_qp_num);
  SAME_PLACE(PairAttributes, access, ibv_qp_attr, qp_access_flags);
  SAME_PLACE(PairAttributes, path, ibv_qp_attr, ah_attr);
  SAME_PLACE(PairAttributes, pkey_index, ibv_qp_attr, pkey_index);
  SAME_PLACE(PairAttributes, most_reads, ibv_qp_attr, max_rd_atomic);
  SAME_PLACE(PairAttributes, most_reads_of_peer, ibv_qp_attr, max_dest_rd_atomic);
  SAME_PLACE(PairAttributes, rnr_timer, ibv_qp_attr, min_rnr_timer);
  SAME_PLACE(PairAttributes, port, ibv_qp_attr, port_num);
  SAME_PLACE(PairAttributes, timeout, ibv_qp_attr, timeout);
  SAME_PLACE(PairAttributes, retry_count, ibv_qp_attr, retry_cnt);
  SAME_PLACE(PairAttributes, rnr_retry_count, ibv_qp_attr, rnr_retry);
}

TEST(LibibverbsAbi, NumbersAreThoseOfTheHeader) {
  EXPECT_EQ(+abi::kWrite, +IBV_WR_RDMA_WRITE);
  EXPECT_EQ(+abi::kWriteWithImmediate, +IBV_WR_RDMA_WRITE_WITH_IMM);
  EXPECT_EQ(+abi::kSend, +IBV_WR_SEND);
  EXPECT_EQ(abi::kSignalled, static_cast<unsigned>(IBV_SEND_SIGNALED));
  EXPECT_EQ(abi::kInline, static_cast<unsigned>(IBV_SEND_INLINE));
  EXPECT_EQ(abi::kReceived, static_cast<unsigned>(IBV_WC_RECV));
  EXPECT_EQ(abi::kReceivedWrite, static_cast<unsigned>(IBV_WC_RECV_RDMA_WITH_IMM));
  EXPECT_EQ(abi::kReliableConnection, static_cast<unsigned>(IBV_QPT_RC));
  EXPECT_EQ(abi::kAccessRemoteWrite, static_cast<unsigned>(IBV_ACCESS_REMOTE_WRITE));
  EXPECT_EQ(abi::kAccessRelaxedOrdering, static_cast<unsigned>(IBV_ACCESS_RELAXED_ORDERING));
  EXPECT_EQ(+abi::kPortNeedsGlobalRoute, +IBV_QPF_GRH_REQUIRED);
  EXPECT_EQ(+abi::kError, +IBV_QPS_ERR);
  EXPECT_EQ(+abi::kReadyToSend, +IBV_QPS_RTS);
  EXPECT_EQ(abi::kSetState | abi::kSetAccess | abi::kSetPkeyIndex | abi::kSetPort | abi::kSetPath | abi::kSetMtu,
            IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_AV | IBV_QP_PATH_MTU);
  EXPECT_EQ(abi::kSetTimeout | abi::kSetRetries | abi::kSetRnrRetries | abi::kSetRemoteSequence | abi::kSetMostReads,
            IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  EXPECT_EQ(abi::kSetRnrTimer | abi::kSetOwnSequence | abi::kSetMostReadsOfPeer | abi::kSetRemotePair,
            IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_DEST_QPN);
}

#else

TEST(LibibverbsAbi, IsThatOfTheHeader) { GTEST_SKIP() << "skipped: needs the header of libibverbs (Debian: libibverbs-dev)"; }

#endif

}  // namespace
}  // namespace seto::rdma
