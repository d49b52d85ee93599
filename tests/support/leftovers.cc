#include "tests/support/leftovers.h"

#include <filesystem>
#include <fstream>

namespace seto::testing {

// Only names that the library could have made count, because other programs of the machine make files too. Tests that run at the
// same time name their temporary files seto_*, and shared memory is no directory.
std::set<std::string> shared_memory_files() {
  std::set<std::string> names;
  for (const char* directory : {"/dev/shm", "/tmp", "/run/shm"}) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(directory, none)) {
      const std::string name = entry.path().filename();
      if ((name.starts_with("seto-") || name.starts_with("seto.")) && !entry.is_directory(none)) names.insert(entry.path());
    }
  }
  return names;
}

std::set<std::string> still_open(const std::set<std::string>& sockets) {
  std::set<std::string> found;
  std::ifstream table("/proc/net/unix");
  for (std::string row; std::getline(table, row);)
    if (const std::size_t at = row.find(" @"); at != std::string::npos && sockets.count(row.substr(at + 1)) > 0)
      found.insert(row.substr(at + 1));
  return found;
}

}  // namespace seto::testing
