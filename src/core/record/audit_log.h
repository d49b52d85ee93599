#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/status.h"
#include "src/base/work_threads.h"

namespace seto {

// Appends lines to a file that processes may share. A thread of its own writes them and waits for the disk; callers never do. A
// file that would become larger than its limit is renamed to PATH.1, PATH.2 and so on; nothing is deleted. Any thread.
class AuditLog final {
 public:
  struct Setup {
    std::string path;
    std::uint64_t most_bytes = 64ULL << 20;    // of one file
    std::size_t most_waiting = 64 * 1'024ULL;  // lines; further ones are lost, and counted
  };
  explicit AuditLog(Setup setup) : setup_(std::move(setup)) {}
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;
  ~AuditLog();
  // The one that this process has for that path; it lives as long as it is used. The first user decides the limit.
  static std::shared_ptr<AuditLog> of_process(const Setup& setup);

  // A line without its end. Does not wait for the file.
  void add(std::string line);
  // Waits until all lines that were added before are in the file or lost. False: not before the deadline.
  bool flush(Deadline until);
  // Lines that are not in the file, since the beginning.
  [[nodiscard]] std::uint64_t lost() const;

 private:
  void write_waiting();
  Status write(const std::vector<std::string>& lines, std::size_t& written);
  Status open_and_lock();
  Status rotate();
  Status append(const std::string& line);
  void tell(const Status& failed, std::size_t count);

  const Setup setup_;
  const std::uint32_t generation_ = fork_generation();
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> waiting_;
  bool writing_ = false;     // a thread will take what waits
  std::uint64_t added_ = 0;  // lines
  std::uint64_t ended_ = 0;  // of these: written or lost
  std::uint64_t lost_ = 0;
  std::uint64_t unsaid_ = 0;  // of these: not stated in the file yet
  // Only of the thread that writes.
  Fd file_;
  bool failing_ = false;                 // the last write failed, and the log says so
  WorkThreads thread_{"seto-audit", 1};  // last: its work uses the others
};

// "2026-03-01T08:00:00.123456Z": microseconds of the wall clock, in RFC 3339.
[[nodiscard]] std::string rfc3339(std::uint64_t wall_us);

}  // namespace seto
