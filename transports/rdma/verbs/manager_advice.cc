#include "transports/rdma/verbs/manager_advice.h"

#include <array>
#include <cerrno>
#include <cstring>

namespace seto::rdma {
namespace {

constexpr std::array<const char*, kManagerCalls> kCallNames{
    "rdma_create_event_channel", "rdma_create_id", "rdma_set_option",   "rdma_bind_addr", "rdma_listen",   "rdma_resolve_addr",
    "rdma_resolve_route",        "rdma_connect",   "rdma_init_qp_attr", "rdma_accept",    "rdma_establish"};

const char* advice_for(ManagerCall call, int error) {
  switch (call) {
    case ManagerCall::create_channel:
      if (error == EACCES || error == EPERM)
        return "give this user access to /dev/infiniband/rdma_cm, in a container by --device /dev/infiniband";
      return error == EMFILE || error == ENFILE
                 ? "raise the limit of open files (ulimit -n)"
                 : "load the kernel module rdma_ucm, and give a container --device /dev/infiniband";
    case ManagerCall::bind:
    case ManagerCall::resolve_address:
      return "see whether the address of the port is still on its interface (ip address, rdma link) and has a route to the peer "
             "(ip route get)";
    case ManagerCall::resolve_route:
      return "see whether the subnet manager is up (InfiniBand: sminfo)";
    default:
      return "see whether the device is still there (ibv_devinfo), and dmesg";
  }
}

}  // namespace

const char* name_of(ManagerCall call) { return kCallNames[static_cast<std::size_t>(call)]; }

Status manager_failure(ManagerCall call, int error) {
  return failure(Code::unavailable, "%s of the connection manager failed: %s (errno %d): %s", name_of(call), std::strerror(error),
                 error, advice_for(call, error));
}

}  // namespace seto::rdma
