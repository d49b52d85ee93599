#include "src/api/group_depth.h"

#include "src/core/group.h"

namespace seto::api {

void note_group_depth() { open_groups = CallGroup::of_thread().depth(); }

}  // namespace seto::api
