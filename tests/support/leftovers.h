#pragma once

#include <set>
#include <string>

namespace seto::testing {

// What may stay behind on a machine after ranks were killed, as names to be compared.
std::set<std::string> shared_memory_files();
// Of the given local sockets, those that still exist.
std::set<std::string> still_open(const std::set<std::string>& sockets);

}  // namespace seto::testing
