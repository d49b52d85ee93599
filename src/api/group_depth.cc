#include "src/api/group_depth.h"

#include "src/core/group.h"

namespace seto::api {

int group_depth() { return CallGroup::of_thread().depth(); }

}  // namespace seto::api
