#pragma once

#include <sys/socket.h>

#include <memory>
#include <string>

#include "transports/rdma/verbs/librdmacm_abi.h"
#include "transports/rdma/verbs/manager.h"

namespace seto::rdma {

inline constexpr const char* kManagerLibrary = "librdmacm.so.1";

// The functions that the library calls. VISIT(type of the result, name, arguments). The last one is libibverbs', which librdmacm
// brings with it.
#define SETO_LIBRDMACM_FUNCTIONS(VISIT)                                                      \
  VISIT(abi::ManagerChannel*, rdma_create_event_channel, ())                                 \
  VISIT(void, rdma_destroy_event_channel, (abi::ManagerChannel*))                            \
  VISIT(int, rdma_create_id, (abi::ManagerChannel*, abi::ManagerId**, void*, std::uint32_t)) \
  VISIT(int, rdma_destroy_id, (abi::ManagerId*))                                             \
  VISIT(int, rdma_set_option, (abi::ManagerId*, int, int, void*, std::size_t))               \
  VISIT(int, rdma_bind_addr, (abi::ManagerId*, sockaddr*))                                   \
  VISIT(int, rdma_listen, (abi::ManagerId*, int))                                            \
  VISIT(std::uint16_t, rdma_get_src_port, (abi::ManagerId*))                                 \
  VISIT(int, rdma_resolve_addr, (abi::ManagerId*, sockaddr*, sockaddr*, int))                \
  VISIT(int, rdma_resolve_route, (abi::ManagerId*, int))                                     \
  VISIT(int, rdma_connect, (abi::ManagerId*, abi::ManagerTerms*))                            \
  VISIT(int, rdma_accept, (abi::ManagerId*, abi::ManagerTerms*))                             \
  VISIT(int, rdma_reject, (abi::ManagerId*, const void*, std::uint8_t))                      \
  VISIT(int, rdma_establish, (abi::ManagerId*))                                              \
  VISIT(int, rdma_get_cm_event, (abi::ManagerChannel*, abi::ManagerEvent**))                 \
  VISIT(int, rdma_ack_cm_event, (abi::ManagerEvent*))                                        \
  VISIT(const char*, rdma_event_str, (std::uint32_t))                                        \
  VISIT(int, rdma_init_qp_attr, (abi::ManagerId*, abi::PairAttributes*, int*))               \
  VISIT(const char*, ibv_get_device_name, (abi::DeviceName*))

struct LibrdmacmFunctions {
#define SETO_MEMBER(result, name, arguments) result(*name) arguments = nullptr;
  SETO_LIBRDMACM_FUNCTIONS(SETO_MEMBER)
#undef SETO_MEMBER
};

// The connection manager of this machine. The library is opened at run time, and stays open until the process ends.
class Librdmacm final : public ConnectionManager {
 public:
  // A failure, too, where the kernel has no manager for processes.
  static Result<std::unique_ptr<ConnectionManager>> open(const std::string& file = kManagerLibrary);
  // With functions from elsewhere, which a test provides.
  explicit Librdmacm(const LibrdmacmFunctions& functions) : functions_(functions) {}

  Result<std::unique_ptr<ManagedConnection>> new_connection() override;

 private:
  LibrdmacmFunctions functions_;
};

// The address for the calls of the library: of IPv4, IPv6 or InfiniBand.
[[nodiscard]] sockaddr_storage socket_address_of(const ManagerAddress& address);

}  // namespace seto::rdma
