#pragma once

#include <string>

#include "transports/rdma/verbs/verbs.h"

namespace seto::rdma {

// The calls that can fail.
enum class VerbsCall : std::uint8_t {
  list_devices,
  open_device,
  query_device,
  query_port,
  query_gid,
  query_pkey,
  allocate_domain,
  register_memory,
  register_dma_buf,
  create_channel,
  create_completion_queue,
  grow_completion_queue,
  create_queue_pair,
  prepare,
  ready_to_receive,
  ready_to_send,
  post_send,
  post_receive,
  poll,
  arm,
};
inline constexpr std::size_t kVerbsCalls = static_cast<std::size_t>(VerbsCall::arm) + 1;
[[nodiscard]] const char* name_of(VerbsCall call);

// The failure of a call with that errno: the call, the device, what happened and what to do.
[[nodiscard]] Status verbs_failure(VerbsCall call, const std::string& device, int error);
// The same of a request that did not complete. `peer`: as the user knows it, for example "rank 3".
[[nodiscard]] Status completion_failure(const Completion& completion, const std::string& peer);
// An event of a device, in words.
[[nodiscard]] std::string to_text(const AsyncEvent& event);

}  // namespace seto::rdma
