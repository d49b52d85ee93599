#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "src/api/support/handles.h"
#include "src/core/call/collective_call.h"
#include "src/core/launch/point_to_point.h"

namespace seto::api {

// Launches a call on a communicator on device memory. The caller holds a CallGuard, and `usable` is set.
Status issue_on_device(setoComm& comm, const Call& call, setoStream_t stream);

// The same for sends and receives: one, or those of an all_to_all_v. A message to the same rank needs a group.
struct DeviceMessages {
  setoComm_t comm = nullptr;
  setoStream_t stream = nullptr;
  std::uint32_t deadline_ms = 0;
  CallerMark mark{};
};
Status issue_on_device(const DeviceMessages& call, Transfer transfer);
Status issue_on_device(const DeviceMessages& call, std::vector<Transfer> exchange);

// Appends the call to this thread's group. If that fails, the failure is also the group's result.
Status queue_on_device(setoComm_t comm, const Call& call, setoStream_t stream);

// Launches the calls of this thread's group, each on its own GPU. All sends and receives of a communicator are one launch, which
// comes first, since ranks may name them in different places of their groups. The others of a communicator and a stream share
// launches, as far as no order with calls between them forbids it; decision 45.
Status launch_queued();
[[nodiscard]] bool has_queued();
void drop_queued();

// Fails if the communicator is on device memory: `what` is not offered there.
Status refuse_on_device(const setoComm& comm, const char* what);

}  // namespace seto::api
