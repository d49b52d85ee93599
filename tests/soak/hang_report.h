#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace seto::soak {

// Has these processes write their flight recorders, and prints what all dumps in the directory say together, and where the
// threads of the processes stand.
void print_dumps(const std::string& directory, const std::vector<pid_t>& hanging);

}  // namespace seto::soak
