#include "src/bootstrap/providers/root_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "src/base/fd.h"
#include "src/bootstrap/rendezvous/outgoing_connection.h"

namespace seto {
namespace {

// Shared file systems show a new file late; on NFS the delay is its attribute cache, some seconds by default.
constexpr int kLookMs = 50;
constexpr std::uint64_t kProbeMs = 2'000;

std::string content_of(const UniqueIdBytes& id) { return hex_text(id) + "\n"; }

Status check_owner(int fd, const std::string& path) {
  struct stat state {};
  if (fstat(fd, &state) != 0)
    return system_failure(Code::unavailable, "cannot read the owner of the root file '%s'", path.c_str());
  const bool own = state.st_uid == geteuid() && S_ISREG(state.st_mode) && (state.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  if (own) return {};
  return failure(Code::invalid_usage, "the root file '%s' can be read or written by other users (owner %u, mode %03o): remove it",
                 path.c_str(), state.st_uid, static_cast<unsigned>(state.st_mode & 0777));
}

Result<std::string> read_content(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) {
    return system_failure(errno == ENOENT ? Code::remote_error : Code::unavailable, "cannot read the root file '%s'",
                          path.c_str());
  }
  SETO_TRY(check_owner(fd.get(), path));
  std::array<char, 2 * kUniqueIdSize + 2> bytes;
  const ssize_t got = read(fd.get(), bytes.data(), bytes.size());
  if (got < 0) return system_failure(Code::unavailable, "cannot read the root file '%s'", path.c_str());
  return std::string(bytes.data(), static_cast<std::size_t>(got));
}

}  // namespace

Status write_root_file(const std::string& path, const UniqueIdBytes& id) {
  const std::string fresh = path + "." + random_socket_name();
  const std::string content = content_of(id);
  Fd fd(open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const bool written = fd.valid() && write(fd.get(), content.data(), content.size()) == static_cast<ssize_t>(content.size()) &&
                       fsync(fd.get()) == 0 && rename(fresh.c_str(), path.c_str()) == 0;
  if (written) return {};
  Status reason = system_failure(Code::unavailable, "cannot write the root file '%s'", path.c_str());
  if (fd.valid()) unlink(fresh.c_str());
  return reason;
}

void remove_root_file(const std::string& path, const UniqueIdBytes& id) {
  auto content = read_content(path);
  if (content.ok() && *content == content_of(id)) unlink(path.c_str());
}

Result<UniqueId> read_root_file(const std::string& path) {
  SETO_ASSIGN(std::string content, read_content(path));
  if (content.ends_with('\n')) content.pop_back();
  auto bytes = parse_unique_id(content);
  auto id = bytes.ok() ? decode(*bytes) : Result<UniqueId>(bytes.status());
  if (id.ok()) return id;
  return failure(Code::invalid_usage, "the file '%s' was not written by this library: %s", path.c_str(),
                 std::string(id.status().text()).c_str());
}

Result<UniqueId> wait_for_root_file(const std::string& path, int rank, Deadline until) {
  while (true) {
    auto id = read_root_file(path);
    if (id.ok() || id.status().code() != Code::remote_error) return id;
    if (until.stopped()) return failure(Code::invalid_usage, "rank %d: its init was given up", rank);
    if (until.passed()) {
      return failure(Code::timeout,
                     "rank %d: rank 0 has not written SETO_ROOT=file:%s before the deadline of the init (SETO_INIT_TIMEOUT_MS); "
                     "check that it was started, and that all machines see the same file",
                     rank, path.c_str());
    }
    static_cast<void>(poll(nullptr, 0, std::min(kLookMs, until.wait_ms())));
  }
}

Secret presence_key(const UniqueId& id) { return rendezvous_key(id.token).derive("seto root file"); }

Status check_unused(const std::string& path, Deadline until) {
  auto id = read_root_file(path);
  // A file that this library cannot read belongs to another program, or to another version of this library whose job may be
  // running.
  if (!id.ok()) return id.status().code() == Code::remote_error ? Status() : id.status();
  const Deadline patience = until.sooner_ms(kProbeMs);
  OutgoingConnection call(id->address, presence_key(*id), Claim{});
  call.stay_plain();
  call.begin(patience);
  while (!call.over() && !call.proven() && !patience.passed()) {
    std::vector<pollfd> entries;
    call.prepare(entries);
    static_cast<void>(poll(entries.data(), entries.size(), std::min(call.wait_ms(), patience.wait_ms())));
    call.advance();
  }
  if (!call.proven()) return {};
  return failure(Code::invalid_usage, "another job that is running uses SETO_ROOT=file:%s: give each job a file of its own",
                 path.c_str());
}

}  // namespace seto
