#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace seto::soak {

// Requests the flight recorders of these processes, and prints the report of all dumps in the directory and the stacks of the
// processes' threads.
void print_dumps(const std::string& directory, const std::vector<pid_t>& hanging);

}  // namespace seto::soak
