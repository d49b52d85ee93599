#include "src/topology/host_identity.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <functional>

#include "src/base/fd.h"

namespace seto {
namespace {

constexpr const char* kBootIdFile = "/proc/sys/kernel/random/boot_id";
constexpr const char* kNetworkFile = "/proc/self/ns/net";
constexpr const char* kSharedMemory = "/dev/shm";

std::string place_of(const char* path) {
  struct stat state {};
  if (stat(path, &state) != 0) return "none";
  return std::to_string(major(state.st_dev)) + "." + std::to_string(minor(state.st_dev)) + "." + std::to_string(state.st_ino);
}

// A container that forbids memfd_create cannot share memory, even if it shares everything else.
bool can_share_memory() { return Fd(memfd_create("seto-probe", MFD_CLOEXEC)).valid(); }

std::string boot_of_kernel() {
  std::string boot;
  std::ifstream(kBootIdFile) >> boot;
  return boot;
}

}  // namespace

std::uint64_t machine_number() {
  const std::string boot = boot_of_kernel();
  return boot.empty() ? 0 : std::max<std::uint64_t>(1, std::hash<std::string>{}(boot));
}

Result<std::string> host_identity(std::string_view override_id) {
  if (override_id.size() > kHostIdLimit) {
    return failure(Code::invalid_argument, "a host id of %zu characters is over the limit of %zu", override_id.size(),
                   kHostIdLimit);
  }
  if (!override_id.empty()) return "id=" + std::string(override_id);
  errno = 0;
  const std::string boot = boot_of_kernel();
  if (boot.empty()) {
    return system_failure(Code::unavailable,
                          "cannot identify this machine: %s is not readable; set SETO_HOST_ID to a name of the machine",
                          kBootIdFile);
  }
  std::string identity = "boot=" + boot + " net=" + place_of(kNetworkFile) + " user=" + std::to_string(geteuid());
  // Separate /dev/shm mounts mean separate containers, whose ranks were not meant to share memory.
  identity += " shm=" + place_of(kSharedMemory);
  // The process id makes this identity unique.
  if (!can_share_memory()) identity += " alone=" + std::to_string(getpid());
  return identity;
}

}  // namespace seto
