#pragma once

#include <string>

#include "bench/common/program.h"

namespace seto::bench {

// Returns the reason why the program cannot be pinned to an algorithm of that name, from the "algorithms" topic of setoInfo as
// JSON; empty if it can. A communicator accepts any name that some collective has, and ignores it for the other collectives.
std::string check_algorithm(const Program& program, const std::string& name, const std::string& algorithms_json);

}  // namespace seto::bench
