#include "src/core/dump/dump_writer.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <sstream>
#include <utility>

#include "src/base/log.h"
#include "src/base/thread.h"
#include "src/core/communicator/communicator.h"
#include "src/core/dump/dump_file.h"
#include "src/core/dump/dump_format.h"
#include "src/core/dump/dump_signal.h"

namespace seto {

struct StopDumpWriter {
  ~StopDumpWriter() { DumpWriter::of_process().stop(); }
  static void at_exit() { static const StopDumpWriter only; }
};

DumpWriter& DumpWriter::of_process() {
  static DumpWriter* const only = new DumpWriter;  // never destroyed: communicators may outlive static objects
  return *only;
}

void DumpWriter::add(const Communicator& communicator) {
  StopDumpWriter::at_exit();
  warn_of_bad_folder(communicator);
  const std::lock_guard lock(mutex_);
  entries_.try_emplace(&communicator);
}

// A dump is written when the job fails. The user must learn before that that it would be lost.
void DumpWriter::warn_of_bad_folder(const Communicator& communicator) {
  if (communicator.config().dump_file.empty()) return;
  const Status folder = check_folder_of(dump_path(communicator.config().dump_file, communicator.rank()));
  if (folder.ok()) return;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(bad_folder_logged_, true)) return;
  }
  SETO_LOG_AS(warn, (LogOrigin{communicator.rank(), 0}), "SETO_DUMP_FILE: %s, so the dump of a failure would be lost",
              std::string(folder.text()).c_str());
}

Status DumpWriter::listen_to(int signal) {
  StopDumpWriter::at_exit();
  SETO_ASSIGN(ControlThread* const control, ControlThread::of_process());
  const std::lock_guard lock(mutex_);
  if (signal_ == signal) return {};
  if (signal_ != 0)
    return failure(Code::invalid_usage, "SETO_DUMP_SIGNAL=%d: this process uses signal %d already, and can use only one", signal,
                   signal_);
  if (!signal_event_.valid()) signal_event_ = PrivateFd(Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
  if (!signal_event_.valid()) return system_failure(Code::unavailable, "no descriptor for SETO_DUMP_SIGNAL (ulimit -n)");
  if (!watch_.active()) {
    SETO_ASSIGN(watch_, control->add(signal_event_.get(), EPOLLIN, [this](std::uint32_t) {
      eventfd_t count = 0;
      (void)eventfd_read(signal_event_.get(), &count);
      request_all();
    }));
  }
  SETO_TRY(add_to_on_signal(signal_event_.get(), signal));
  signal_ = signal;
  return {};
}

void DumpWriter::remove(const Communicator& communicator) {
  std::unique_lock lock(mutex_);
  const auto found = entries_.find(&communicator);
  if (found == entries_.end()) return;
  changed_.wait(lock, [&] { return !found->second.busy; });
  if (found->second.wanted) write(communicator, found->second, lock);
  entries_.erase(found);
}

void DumpWriter::request(const Communicator& communicator) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(&communicator);
  if (found == entries_.end()) return;
  found->second.wanted = true;
  start_writer();
}

void DumpWriter::request_all() {
  const std::lock_guard lock(mutex_);
  for (auto& [communicator, entry] : entries_) entry.wanted = true;
  if (!entries_.empty()) start_writer();
}

// If no thread can be started, remove() writes the dump.
void DumpWriter::start_writer() {
  if (!writer_.joinable() && !stopping_) {
    Result<std::thread> started = start_thread("seto-dump", [this] { work(); });
    if (started.ok()) writer_ = std::move(started).value();
  }
  changed_.notify_all();
}

void DumpWriter::work() {
  std::unique_lock lock(mutex_);
  const auto wanted = [this] {
    auto next = entries_.begin();
    while (next != entries_.end() && (!next->second.wanted || next->second.busy)) ++next;
    return next;
  };
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || wanted() != entries_.end(); });
    const auto next = wanted();
    if (next == entries_.end()) return;
    write(*next->first, next->second, lock);
  }
}

void DumpWriter::stop() {
  if (process_was_forked()) return;  // the thread belongs to the parent process, and the lock may be held by it
  watch_.remove();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (writer_.joinable()) writer_.join();
}

void DumpWriter::write(const Communicator& communicator, Entry& entry, std::unique_lock<std::mutex>& lock) {
  entry.wanted = false;
  entry.busy = true;
  const bool to_file = !communicator.config().dump_file.empty();
  const std::string path = to_file ? path_for(communicator) : std::string();
  lock.unlock();
  if (to_file) {
    write_to_file(communicator, path);
  } else {
    std::istringstream lines(dump(communicator, ReportFormat::text));
    for (std::string line; std::getline(lines, line);) SETO_LOG_AS(warn, (LogOrigin{communicator.rank(), 0}), "%s", line.c_str());
  }
  lock.lock();
  if (const auto named = paths_.find(path); named != paths_.end()) named->second.written = true;
  entry.busy = false;
  changed_.notify_all();
}

std::string DumpWriter::path_for(const Communicator& communicator) {
  const std::string wanted = dump_path(communicator.config().dump_file, communicator.rank());
  // The rank is part of the owner: ranks that are threads may use the same file name.
  const std::uint64_t owner = communicator.attempt() + static_cast<std::uint64_t>(communicator.rank());
  std::string path = wanted;
  for (unsigned number = 2;; ++number) {
    Name& name = paths_.try_emplace(path, Name{owner, false}).first->second;
    if (name.owner == owner) return path;
    if (name.written && access(path.c_str(), F_OK) != 0) {
      name = {owner, false};
      return path;
    }
    path = numbered(wanted, number);
  }
}

void DumpWriter::write_to_file(const Communicator& communicator, const std::string& path) {
  const Status status = write_file(path, dump(communicator, ReportFormat::json) + "\n");
  if (status.ok()) {
    SETO_LOG_AS(info, (LogOrigin{communicator.rank(), 0}), "flight recorder written to %s", path.c_str());
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(write_error_logged_, true)) return;
  }
  SETO_LOG_AS(error, (LogOrigin{communicator.rank(), 0}), "SETO_DUMP_FILE: %s", std::string(status.text()).c_str());
}

}  // namespace seto
