#include "src/core/dump/dump_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>

#include "src/base/fd.h"

namespace seto {
namespace {

Status write_all(const Fd& file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t count = write(file.get(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return system_failure(Code::unavailable, "cannot write %s", path.c_str());
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name.front() == '\0') return "unknown";
  return name.data();
}

std::string dump_path(std::string_view pattern, Rank rank) {
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'h')
      path += host_name();
    else if (next == 'p')
      path += std::to_string(getpid());
    else if (next == 'r')
      path += std::to_string(rank);
    else if (next == '%')
      path += '%';
    else {
      path += pattern[i];
      continue;
    }
    ++i;
  }
  return path;
}

std::string numbered(const std::string& path, unsigned number) {
  const std::size_t slash = path.rfind('/');
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  std::size_t dot = path.rfind('.');
  if (dot == std::string::npos || dot <= name) dot = path.size();
  return path.substr(0, dot) + "." + std::to_string(number) + path.substr(dot);
}

Status check_folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
  struct stat facts {};
  if (stat(folder.c_str(), &facts) != 0)
    return system_failure(Code::unavailable, "cannot write into the folder %s", folder.c_str());
  if (!S_ISDIR(facts.st_mode)) return failure(Code::unavailable, "cannot write into %s: it is not a folder", folder.c_str());
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    return system_failure(Code::unavailable, "cannot write into the folder %s", folder.c_str());
  return {};
}

Status write_file(const std::string& path, std::string_view text) {
  static std::atomic<unsigned> made{0};  // several threads of a process may write into one directory
  const std::string draft = path + "." + std::to_string(getpid()) + "." + std::to_string(made.fetch_add(1)) + ".new";
  const Fd file(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return system_failure(Code::unavailable, "cannot make %s", draft.c_str());
  Status status = write_all(file, text, draft);
  if (status.ok() && rename(draft.c_str(), path.c_str()) != 0)
    status = system_failure(Code::unavailable, "cannot rename %s to %s", draft.c_str(), path.c_str());
  if (!status.ok()) (void)unlink(draft.c_str());
  return status;
}

}  // namespace seto
