#include "src/core/dump/dump_writer.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <sstream>
#include <utility>

#include "src/base/log.h"
#include "src/base/thread.h"
#include "src/core/communicator/communicator.h"
#include "src/core/dump/dump_format.h"
#include "src/core/dump/dump_file.h"
#include "src/core/dump/dump_signal.h"

namespace seto {

struct StopDumpService {
  ~StopDumpService() { DumpService::of_process().stop(); }
  static void at_exit() { static const StopDumpService only; }
};

DumpService& DumpService::of_process() {
  static DumpService* const only = new DumpService;  // never destroyed: communicators may outlive static objects
  return *only;
}

void DumpService::add(const Communicator& communicator) {
  StopDumpService::at_exit();
  const std::lock_guard lock(mutex_);
  entries_.try_emplace(&communicator);
}

Status DumpService::listen_to(int signal) {
  StopDumpService::at_exit();
  SETO_ASSIGN(ControlThread* const control, ControlThread::of_process());
  const std::lock_guard lock(mutex_);
  if (signal_ == signal) return {};
  if (signal_ != 0)
    return failure(Code::invalid_usage, "SETO_DUMP_SIGNAL=%d: this process listens to signal %d already; it has one", signal,
                   signal_);
  if (!asked_.valid()) asked_ = PrivateFd(Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
  if (!asked_.valid()) return system_failure(Code::unavailable, "no descriptor for SETO_DUMP_SIGNAL (ulimit -n)");
  if (!watch_.active()) {
    SETO_ASSIGN(watch_, control->add(asked_.get(), EPOLLIN, [this](std::uint32_t) {
      eventfd_t count = 0;
      (void)eventfd_read(asked_.get(), &count);
      request_all();
    }));
  }
  SETO_TRY(add_to_on_signal(asked_.get(), signal));
  signal_ = signal;
  return {};
}

void DumpService::remove(const Communicator& communicator) {
  std::unique_lock lock(mutex_);
  const auto found = entries_.find(&communicator);
  if (found == entries_.end()) return;
  changed_.wait(lock, [&] { return !found->second.busy; });
  if (found->second.wanted) write(communicator, found->second, lock);
  entries_.erase(found);
}

void DumpService::request(const Communicator& communicator) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(&communicator);
  if (found == entries_.end()) return;
  found->second.wanted = true;
  start_writer();
}

void DumpService::request_all() {
  const std::lock_guard lock(mutex_);
  for (auto& [communicator, entry] : entries_) entry.wanted = true;
  if (!entries_.empty()) start_writer();
}

// Without a thread, whoever removes the communicator writes.
void DumpService::start_writer() {
  if (!writer_.joinable() && !stopping_) {
    Result<std::thread> started = start_thread("seto-dump", [this] { work(); });
    if (started.ok()) writer_ = std::move(started).value();
  }
  changed_.notify_all();
}

void DumpService::work() {
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

void DumpService::stop() {
  if (process_was_forked()) return;  // the thread is the parent's, and so may be the lock
  watch_.remove();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (writer_.joinable()) writer_.join();
}

void DumpService::write(const Communicator& communicator, Entry& entry, std::unique_lock<std::mutex>& lock) {
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

std::string DumpService::path_for(const Communicator& communicator) {
  const std::string wanted = dump_path(communicator.config().dump_file, communicator.rank());
  // Ranks that are threads and share a name of file are told apart, too.
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

void DumpService::write_to_file(const Communicator& communicator, const std::string& path) {
  const Status status = write_file(path, dump(communicator, ReportFormat::json) + "\n");
  if (status.ok()) {
    SETO_LOG_AS(info, (LogOrigin{communicator.rank(), 0}), "flight recorder written to %s", path.c_str());
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(complained_, true)) return;
  }
  SETO_LOG_AS(error, (LogOrigin{communicator.rank(), 0}), "SETO_DUMP_FILE: %s", std::string(status.text()).c_str());
}

}  // namespace seto
