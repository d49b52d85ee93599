#pragma once

#include "transports/rdma/verbs/libibverbs_abi.h"

namespace seto::rdma {

// The functions of libibverbs that the library calls. VISIT(type of the result, name, arguments).
#define SETO_LIBIBVERBS_FUNCTIONS(VISIT)                                                                                   \
  VISIT(abi::DeviceName**, ibv_get_device_list, (int*))                                                                    \
  VISIT(int, ibv_fork_init, ())                                                                                            \
  VISIT(void, ibv_free_device_list, (abi::DeviceName**))                                                                   \
  VISIT(const char*, ibv_get_device_name, (abi::DeviceName*))                                                              \
  VISIT(abi::Context*, ibv_open_device, (abi::DeviceName*))                                                                \
  VISIT(int, ibv_close_device, (abi::Context*))                                                                            \
  VISIT(int, ibv_query_device, (abi::Context*, abi::DeviceAttributes*))                                                    \
  VISIT(int, ibv_query_port, (abi::Context*, std::uint8_t, abi::PortAttributes*))                                          \
  VISIT(int, _ibv_query_gid_ex, (abi::Context*, std::uint32_t, std::uint32_t, abi::GidEntry*, std::uint32_t, std::size_t)) \
  VISIT(int, ibv_query_pkey, (abi::Context*, std::uint8_t, int, std::uint16_t*))                                           \
  VISIT(abi::Domain*, ibv_alloc_pd, (abi::Context*))                                                                       \
  VISIT(int, ibv_dealloc_pd, (abi::Domain*))                                                                               \
  VISIT(abi::Region*, ibv_reg_mr, (abi::Domain*, void*, std::size_t, int))                                                 \
  VISIT(abi::Region*, ibv_reg_mr_iova2, (abi::Domain*, void*, std::size_t, std::uint64_t, unsigned))                       \
  VISIT(int, ibv_dereg_mr, (abi::Region*))                                                                                 \
  VISIT(abi::Channel*, ibv_create_comp_channel, (abi::Context*))                                                           \
  VISIT(int, ibv_destroy_comp_channel, (abi::Channel*))                                                                    \
  VISIT(abi::Queue*, ibv_create_cq, (abi::Context*, int, void*, abi::Channel*, int))                                       \
  VISIT(int, ibv_resize_cq, (abi::Queue*, int))                                                                            \
  VISIT(int, ibv_destroy_cq, (abi::Queue*))                                                                                \
  VISIT(int, ibv_get_cq_event, (abi::Channel*, abi::Queue**, void**))                                                      \
  VISIT(void, ibv_ack_cq_events, (abi::Queue*, unsigned))                                                                  \
  VISIT(abi::Pair*, ibv_create_qp, (abi::Domain*, abi::PairSetup*))                                                        \
  VISIT(int, ibv_modify_qp, (abi::Pair*, abi::PairAttributes*, int))                                                       \
  VISIT(int, ibv_destroy_qp, (abi::Pair*))                                                                                 \
  VISIT(int, ibv_get_async_event, (abi::Context*, abi::AsyncEvent*))                                                       \
  VISIT(void, ibv_ack_async_event, (abi::AsyncEvent*))

// Functions of later releases than rdma-core 31, without which the rest works: null where the library has none.
#define SETO_LIBIBVERBS_LATER_FUNCTIONS(VISIT) \
  VISIT(abi::Region*, ibv_reg_dmabuf_mr, (abi::Domain*, std::uint64_t, std::size_t, std::uint64_t, int, int))

struct LibibverbsFunctions {
#define SETO_MEMBER(result, name, arguments) result(*name) arguments = nullptr;
  SETO_LIBIBVERBS_FUNCTIONS(SETO_MEMBER)
  SETO_LIBIBVERBS_LATER_FUNCTIONS(SETO_MEMBER)
#undef SETO_MEMBER
};

}  // namespace seto::rdma
