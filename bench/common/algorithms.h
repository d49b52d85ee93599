#pragma once

#include <string>

#include "bench/common/program.h"

namespace seto::bench {

// Why the program cannot be pinned to an algorithm of that name, by the "algorithms" of setoInfo as JSON; empty if it can. A
// communicator takes any name that some collective has, and goes on without it in the others.
std::string check_algorithm(const Program& program, const std::string& name, const std::string& algorithms_json);

}  // namespace seto::bench
