#include "transports/rdma/verbs/verbs_advice.h"

#include <array>
#include <cerrno>
#include <cstring>

namespace seto::rdma {
namespace {

constexpr std::array<const char*, kVerbsCalls> kCallNames{
    "ibv_get_device_list", "ibv_open_device", "ibv_query_device", "ibv_query_port",       "ibv_query_gid_ex",
    "ibv_query_pkey",      "ibv_alloc_pd",    "ibv_reg_mr",       "ibv_reg_dmabuf_mr",    "ibv_create_comp_channel",
    "ibv_create_cq",       "ibv_resize_cq",   "ibv_create_qp",    "ibv_modify_qp (init)", "ibv_modify_qp (rtr)",
    "ibv_modify_qp (rts)", "ibv_post_send",   "ibv_post_recv",    "ibv_poll_cq",          "ibv_req_notify_cq"};

const char* advice_for(VerbsCall call, int error) {
  switch (call) {
    case VerbsCall::list_devices:
      return error == ENOSYS ? "load the kernel module ib_uverbs" : "see whether /dev/infiniband exists and may be read";
    case VerbsCall::open_device:
      if (error == EACCES || error == EPERM)
        return "give this user access to /dev/infiniband/uverbs*, in a container by --device";
      return "see dmesg for messages of the driver of this device";
    case VerbsCall::register_memory:
      if (error == ENOMEM || error == EAGAIN || error == EPERM)
        return "raise the limit of locked memory (ulimit -l unlimited, or LimitMEMLOCK=infinity for a service)";
      if (error == EFAULT) return "the memory is not mapped, or was freed";
      return "see dmesg for messages of the driver of this device";
    case VerbsCall::register_dma_buf:
      if (error == EOPNOTSUPP || error == ENOSYS || error == ENOTTY)
        return "the kernel or the driver of this device takes no dma-buf: Linux 5.12 and a device of mlx5, bnxt_re, efa or irdma "
               "do";
      if (error == ENOMEM || error == EAGAIN || error == EPERM)
        return "raise the limit of locked memory (ulimit -l unlimited); a GPU may also have no address space left for devices "
               "(BAR1)";
      return "the GPU's driver does not let this device have the memory: see dmesg, and nvidia-smi topo -m for their path";
    case VerbsCall::allocate_domain:
    case VerbsCall::create_channel:
    case VerbsCall::create_completion_queue:
    case VerbsCall::create_queue_pair:
      if (error == ENOMEM)
        return "raise the limit of locked memory (ulimit -l unlimited), or use fewer processes: the device has no more objects";
      return "see dmesg for messages of the driver of this device";
    case VerbsCall::grow_completion_queue:
      if (error == ENOMEM)
        return "raise the limit of locked memory (ulimit -l unlimited), or use fewer processes: the device has no more memory";
      return "the driver of this device does not enlarge queues: data to further peers of it goes over TCP";
    case VerbsCall::prepare:
      return "see whether the port and its partition key are still there: ibv_devinfo -v";
    case VerbsCall::ready_to_receive:
      if (error == ENODATA || error == EINVAL || error == ENETUNREACH || error == EHOSTUNREACH || error == ETIMEDOUT)
        return "no route from the chosen GID to the peer's: see whether both are on one network (ibv_devinfo -v, ip route get)";
      return "see whether the port is active: ibv_devinfo";
    case VerbsCall::query_gid:
      return "the table of GIDs needs rdma-core 31 or later and Linux 5.10 or later";
    default:
      return "see whether the device is still there: ibv_devinfo";
  }
}

const char* name_of(CompletionStatus status) {
  switch (status) {
    case CompletionStatus::success:
      return "success";
    case CompletionStatus::local_length_error:
      return "local length error";
    case CompletionStatus::local_queue_pair_error:
      return "local queue pair error";
    case CompletionStatus::local_protection_error:
      return "local protection error";
    case CompletionStatus::flushed:
      return "request flushed";
    case CompletionStatus::bad_response:
      return "bad response";
    case CompletionStatus::local_access_error:
      return "local access error";
    case CompletionStatus::remote_invalid_request:
      return "invalid request at the peer";
    case CompletionStatus::remote_access_error:
      return "access refused by the peer's device";
    case CompletionStatus::remote_operation_error:
      return "operation failed at the peer";
    case CompletionStatus::retry_exceeded:
      return "no answer from the peer's device";
    case CompletionStatus::rnr_retry_exceeded:
      return "the peer had no receive request";
    case CompletionStatus::remote_aborted:
      return "aborted by the peer";
    case CompletionStatus::fatal:
      return "fatal error of the device";
    case CompletionStatus::response_timeout:
      return "response timed out";
    case CompletionStatus::general_error:
      break;
  }
  return "general error";
}

const char* advice_for(CompletionStatus status) {
  switch (status) {
    case CompletionStatus::retry_exceeded:
    case CompletionStatus::response_timeout:
      return "the path is broken or loses packets: see whether both ports are up, that both hosts use the same kind of RoCE and "
             "VLAN, and the "
             "switch's counters of dropped packets";
    case CompletionStatus::rnr_retry_exceeded:
      return "this is an error of the library: please report it";
    case CompletionStatus::flushed:
      return "the queue pair failed before: the first failure tells why";
    case CompletionStatus::local_protection_error:
    case CompletionStatus::local_access_error:
    case CompletionStatus::remote_access_error:
      return "memory was freed or its registration ended while it was in use";
    default:
      return "see the peer's log, and dmesg of both hosts";
  }
}

}  // namespace

const char* name_of(VerbsCall call) { return kCallNames[static_cast<std::size_t>(call)]; }

Status verbs_failure(VerbsCall call, const std::string& device, int error) {
  return failure(Code::unavailable, "%s%s%s failed: %s (errno %d): %s", name_of(call), device.empty() ? "" : " of ",
                 device.c_str(), std::strerror(error), error, advice_for(call, error));
}

Status completion_failure(const Completion& completion, const std::string& peer) {
  return failure(Code::remote_error, "RDMA to %s failed: %s (status %u, vendor code 0x%x, queue pair %u): %s", peer.c_str(),
                 name_of(completion.status), static_cast<unsigned>(completion.status), completion.vendor_error,
                 completion.queue_pair, advice_for(completion.status));
}

std::string to_text(const AsyncEvent& event) {
  const std::string port = "port " + std::to_string(event.port);
  const std::string pair = "queue pair " + std::to_string(event.queue_pair);
  switch (event.kind) {
    case AsyncEventKind::completion_queue_error:
      return "a completion queue overflowed";
    case AsyncEventKind::queue_pair_fatal:
      return pair + " has failed";
    case AsyncEventKind::queue_pair_request_error:
      return pair + " got an invalid request from its peer";
    case AsyncEventKind::queue_pair_access_error:
      return pair + " refused an access of its peer";
    case AsyncEventKind::established:
      return pair + " is established";
    case AsyncEventKind::device_fatal:
      return "the device was removed or has failed";
    case AsyncEventKind::port_active:
      return port + " is up";
    case AsyncEventKind::port_error:
      return port + " is down";
    case AsyncEventKind::lid_change:
      return port + " has another LID";
    case AsyncEventKind::pkey_change:
      return port + " has other partition keys";
    case AsyncEventKind::gid_change:
      return port + " has other GIDs";
  }
  return "event " + std::to_string(static_cast<unsigned>(event.kind));
}

}  // namespace seto::rdma
