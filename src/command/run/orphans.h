#pragma once

#include <sys/types.h>

#include <set>

#include "src/base/clock.h"

namespace seto::command {

// Ends what processes of a job left behind, however deep, and waits for it: children of this process, which is the reaper of its
// descendants, but for those to keep. What cannot be ended by then stays.
void end_orphans(const std::set<pid_t>& keep, Deadline until);

}  // namespace seto::command
