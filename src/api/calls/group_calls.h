#pragma once

#include "src/api/support/handles.h"
#include "src/core/host_stream/call_group.h"

namespace seto::api {

// The host stream of a handle; null for NULL.
Result<std::shared_ptr<HostStream>> stream_of(setoStream_t stream);

// The target of a call while this thread's group is open. The communicator's memory stays until the group ends; whether the
// communicator is still usable is checked then.
Result<CallGroup::Target> group_target(setoComm_t comm, setoStream_t stream);

// Ends this thread's group; counts as a call on each of its communicators.
Status end_group();
// The estimate for setoGroupSimulateEnd: microseconds, negative if unknown.
Result<double> simulate_group();
void drop_group();

}  // namespace seto::api
