#include "src/core/record/audit_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <map>
#include <utility>

#include "src/base/fork.h"
#include "src/base/json_writer.h"
#include "src/base/log.h"
#include "src/core/record/observability.h"

namespace seto {
namespace {

// A disk that hangs must not keep a process from ending.
constexpr int kLastLinesMs = 2'000;

// Other processes may rotate the file as often as this while one waits for the lock.
constexpr int kMostReopens = 100;

std::string lost_line(std::uint64_t count) {
  JsonWriter json;
  json.open('{').key("event").value("lines_lost").key("time").value(rfc3339(wall_us())).key("lines").number(count).close('}');
  return std::move(json).text();
}

// Makes a new name of a file durable. Not every file system can.
void sync_folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid()) (void)fsync(fd.get());
}

// Releases the lock of the file at the end of a scope.
struct Locked {
  explicit Locked(const Fd& locked) : file(locked) {}
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() {
    if (file.valid()) (void)flock(file.get(), LOCK_UN);
  }
  const Fd& file;
};

}  // namespace

std::string rfc3339(std::uint64_t wall_us) {
  const auto seconds = static_cast<std::time_t>(wall_us / 1'000'000U);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 40> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text.data() + size, text.size() - size, ".%06uZ", static_cast<unsigned>(wall_us % 1'000'000U));
  return text.data();
}

std::shared_ptr<AuditLog> AuditLog::of_process(const Setup& setup) {
  static std::mutex* const mutex = new std::mutex;
  static auto* const logs = new std::map<std::string, std::weak_ptr<AuditLog>>;
  const std::lock_guard lock(*mutex);
  std::weak_ptr<AuditLog>& known = (*logs)[setup.path];
  std::shared_ptr<AuditLog> log = known.lock();
  if (log == nullptr) known = log = std::make_shared<AuditLog>(setup);
  return log;
}

AuditLog::~AuditLog() {
  if (generation_ == fork_generation()) (void)flush(Deadline::after_ms(kLastLinesMs));
  thread_.stop();
}

void AuditLog::add(std::string line) {
  if (generation_ != fork_generation()) return;  // the thread belongs to the parent process
  const std::lock_guard lock(mutex_);
  ++added_;
  if (waiting_.size() >= setup_.most_waiting) {
    ++ended_;
    ++lost_;
    ++unsaid_;
    return;
  }
  waiting_.push_back(std::move(line));
  if (writing_) return;
  // Without a thread the lines wait for the next one.
  writing_ = thread_.add([this] { write_waiting(); }).ok();
}

bool AuditLog::flush(Deadline until) {
  if (generation_ != fork_generation()) return true;  // its lines were dropped
  std::unique_lock lock(mutex_);
  const std::uint64_t all = added_;
  while (ended_ < all && !until.passed())
    changed_.wait_for(lock, std::chrono::milliseconds(std::max(1, std::min(until.remaining_ms(), 100))));
  return ended_ >= all;
}

std::uint64_t AuditLog::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void AuditLog::write_waiting() {
  std::unique_lock lock(mutex_);
  while (!waiting_.empty()) {
    std::vector<std::string> lines;
    lines.swap(waiting_);
    const std::uint64_t unsaid = std::exchange(unsaid_, 0);
    lock.unlock();
    if (unsaid > 0) lines.insert(lines.begin(), lost_line(unsaid));
    std::size_t written = 0;
    const Status outcome = write(lines, written);
    const std::size_t said = unsaid > 0 ? 1 : 0;  // the first line is not one that was added
    const std::size_t failed = lines.size() - std::max(written, said);
    tell(outcome, failed);
    lock.lock();
    ended_ += lines.size() - said;
    lost_ += failed;
    unsaid_ += failed + (written < said ? unsaid : 0);
    changed_.notify_all();
  }
  writing_ = false;
}

// A person is told once when lines begin to be lost, and the file states how many once it can be written again.
void AuditLog::tell(const Status& failed, std::size_t count) {
  const bool before = std::exchange(failing_, !failed.ok());
  if (failed.ok() || before) return;
  SETO_LOG(error, "SETO_AUDIT_FILE: %s; %zu lines are lost, and further ones until it can be written again",
           std::string(failed.text()).c_str(), count);
}

// One lock for all lines that wait, one write for each, and one wait for the disk.
Status AuditLog::write(const std::vector<std::string>& lines, std::size_t& written) {
  SETO_TRY(open_and_lock());
  Status outcome;
  {
    const Locked locked(file_);
    for (const std::string& line : lines) {
      outcome = append(line + "\n");
      if (!outcome.ok()) break;
      ++written;
    }
    // A device or a pipe has nothing to wait for.
    if (written > 0 && fsync(file_.get()) != 0 && errno != EINVAL && errno != EROFS && outcome.ok())
      outcome = system_failure(Code::unavailable, "cannot write %s to the disk", setup_.path.c_str());
  }
  if (!outcome.ok()) file_ = Fd();  // the next lines open it anew: it may have been replaced
  return outcome;
}

// The lock counts for the file that has the name now, because another process may just have renamed it.
Status AuditLog::open_and_lock() {
  const auto refused = [&] { return system_failure(Code::unavailable, "cannot append to %s", setup_.path.c_str()); };
  for (int attempt = 0; attempt < kMostReopens; ++attempt) {
    if (!file_.valid()) file_ = Fd(open(setup_.path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600));
    if (!file_.valid()) return refused();
    int locked = 0;
    do {
      locked = flock(file_.get(), LOCK_EX);
    } while (locked != 0 && errno == EINTR);
    if (locked != 0) return refused();
    struct stat own {};
    struct stat named {};
    if (fstat(file_.get(), &own) != 0) return refused();
    if (stat(setup_.path.c_str(), &named) == 0 && own.st_ino == named.st_ino && own.st_dev == named.st_dev) return {};
    file_ = Fd();  // which releases the lock
  }
  return failure(Code::unavailable, "cannot append to %s: it is replaced again and again", setup_.path.c_str());
}

// With the lock held: only a process that holds it renames the file, so no name is used twice. Closing the old file gives up its
// lock; a process that waits for it finds that the name belongs to another file now.
Status AuditLog::rotate() {
  std::string old;
  for (unsigned number = 1;; ++number) {
    old = setup_.path + "." + std::to_string(number);
    if (access(old.c_str(), F_OK) != 0) break;
  }
  (void)fsync(file_.get());
  if (rename(setup_.path.c_str(), old.c_str()) != 0)
    return system_failure(Code::unavailable, "cannot rename %s to %s", setup_.path.c_str(), old.c_str());
  file_ = Fd();
  SETO_TRY(open_and_lock());
  sync_folder_of(setup_.path);
  return {};
}

// A line that did not fit on the disk leaves no part of itself.
Status AuditLog::append(const std::string& line) {
  struct stat now {};
  if (fstat(file_.get(), &now) == 0 && now.st_size > 0 &&
      static_cast<std::uint64_t>(now.st_size) + line.size() > setup_.most_bytes) {
    SETO_TRY(rotate());
    if (fstat(file_.get(), &now) != 0) now.st_size = 0;
  }
  const ssize_t took = ::write(file_.get(), line.data(), line.size());
  if (took == static_cast<ssize_t>(line.size())) return {};
  const int error = took < 0 ? errno : ENOSPC;
  if (took > 0) (void)!ftruncate(file_.get(), now.st_size);
  errno = error;
  return system_failure(Code::unavailable, "cannot append to %s", setup_.path.c_str());
}

}  // namespace seto
