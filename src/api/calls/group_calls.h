#pragma once

#include "src/api/support/handles.h"
#include "src/core/host_stream/call_group.h"

namespace seto::api {

// The host stream of that handle; null for NULL.
Result<std::shared_ptr<HostStream>> stream_of(setoStream_t stream);

// Where a call on this communicator and stream belongs while this thread's group is open. The communicator's memory stays until
// the group ends; whether it may still be used is asked then.
Result<CallGroup::Place> place_in_group(setoComm_t comm, setoStream_t stream);

// Ends this thread's group, as a call inside each of its communicators.
Status end_group();
// As setoGroupSimulateEnd gives it: microseconds, negative if unknown.
Result<double> simulate_group();
void drop_group();

}  // namespace seto::api
