#include "src/api/support/thread_group.h"

namespace seto::api {

ThreadGroup& thread_group() {
  thread_local ThreadGroup group;
  return group;
}

void note_group_depth() { open_groups = thread_group().calls.depth(); }

}  // namespace seto::api
