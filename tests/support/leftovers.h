#pragma once

#include <set>
#include <string>

namespace seto::testing {

// The names of shared-memory files that may remain after ranks were killed.
std::set<std::string> shared_memory_files();
// Those of the given local sockets that still exist.
std::set<std::string> still_open(const std::set<std::string>& sockets);

}  // namespace seto::testing
