#include "src/command/run/orphans.h"

#include <dirent.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/fd.h"
#include "src/base/text.h"
#include "src/command/files.h"

namespace seto::command {
namespace {

// Polling interval on kernels without pidfd.
constexpr int kLookAgainMs = 10;

// Parses /proc/N/stat: "N (name) state parent ...", where the name may contain anything. A process that ends meanwhile can be
// opened and then not be read: it is no child.
bool is_child(const std::string& process) {
  std::string text;
  if (!read_file("/proc/" + process + "/stat", text)) return false;
  const std::size_t end = text.rfind(") ");
  return end != std::string::npos && text.substr(end + 4).starts_with(std::to_string(getpid()) + " ");
}

// /proc/N/task/N/children is not used: not every kernel has it, and it may leave children out while others end.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  for (const dirent* entry = nullptr; folder != nullptr && (entry = readdir(folder.get())) != nullptr;) {
    const std::optional<std::uint64_t> number = parse_uint(entry->d_name);
    if (number && is_child(entry->d_name)) found.push_back(static_cast<pid_t>(*number));
  }
  return found;
}

bool ends(pid_t child, Deadline until) {
  const Fd ending(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  while (waitpid(child, nullptr, WNOHANG) == 0) {
    if (until.passed()) return false;
    pollfd entry{ending.get(), POLLIN, 0};
    poll(&entry, 1, ending.valid() ? until.remaining_ms() : std::min(kLookAgainMs, until.remaining_ms()));
  }
  return true;
}

}  // namespace

// Once a child has been waited for, its own children become children of this process.
void end_orphans(const std::set<pid_t>& keep, Deadline until) {
  while (true) {
    std::vector<pid_t> orphans = children();
    std::erase_if(orphans, [&](pid_t child) { return keep.contains(child); });
    if (orphans.empty()) return;
    for (const pid_t orphan : orphans) kill(orphan, SIGKILL);
    for (const pid_t orphan : orphans)
      if (!ends(orphan, until)) return;
  }
}

}  // namespace seto::command
