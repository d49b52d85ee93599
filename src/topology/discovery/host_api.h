#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/topology/graph/core_set.h"

namespace seto {

// The facts of the operating system that discovery reads. Tests have a fake.
class HostApi {
 public:
  struct Address {
    std::string interface;
    std::string text;  // numeric, without a prefix length
  };

  virtual ~HostApi() = default;
  // A small file, such as one of sysfs, without the final newline. Absent if it cannot be read.
  virtual std::optional<std::string> read(const std::string& path) = 0;
  // The names in a folder, sorted. Empty if there is no such folder.
  virtual std::vector<std::string> list(const std::string& folder) = 0;
  // The path behind all symbolic links.
  virtual std::optional<std::string> real_path(const std::string& path) = 0;
  virtual std::vector<Address> addresses() = 0;
  // The cores on which this process may run, which is what its cgroup and its affinity permit.
  virtual CoreSet usable_cores() = 0;
};

std::unique_ptr<HostApi> system_host();

}  // namespace seto
