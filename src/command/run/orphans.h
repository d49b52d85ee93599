#pragma once

#include <sys/types.h>

#include <set>

#include "src/base/clock.h"

namespace seto::command {

// Ends all remaining descendants of a job, and waits for them. This process is their reaper, so they become its children; `keep`
// lists the children to spare. A process that cannot be ended by the deadline is left.
void end_orphans(const std::set<pid_t>& keep, Deadline until);

}  // namespace seto::command
