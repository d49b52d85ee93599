#include "src/api/support/thread_group.h"

#include "src/core/host_stream/call_group.h"

namespace seto::api {

void note_group_depth() { open_groups = CallGroup::of_thread().depth(); }

}  // namespace seto::api
