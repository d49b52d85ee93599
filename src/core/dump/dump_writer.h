#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/control/control_thread.h"
#include "src/core/record/observability.h"

namespace seto {

class Communicator;

// Writes automatic dumps: of a communicator that has failed, of all communicators after a signal. A thread of its own writes
// them, started on demand: a file system that hangs must stop neither the ranks nor their heartbeats. Global state of the
// process, as signals are. Any thread, with no lock of a communicator held.
class DumpWriter final : public DumpRequests {
 public:
  // Lives until the process ends; requested dumps are written before that.
  static DumpWriter& of_process();

  // From now on this signal requests dumps of all communicators. A process has one such signal.
  Status listen_to(int signal) override;
  // A communicator may be dumped from add() (when it is complete) to remove(), which waits for a dump that is being written and
  // writes a requested one.
  void add(const Communicator& communicator) override;
  void remove(const Communicator& communicator) override;
  // Requests a dump and does not wait for it.
  void request(const Communicator& communicator) override;
  void request_all();

  DumpWriter(const DumpWriter&) = delete;
  DumpWriter& operator=(const DumpWriter&) = delete;

 private:
  struct Entry {
    bool wanted = false;
    bool busy = false;
  };

  DumpWriter() = default;
  void start_writer();  // locked
  void work();
  void stop();
  // Releases the lock while it writes.
  void write(const Communicator& communicator, Entry& entry, std::unique_lock<std::mutex>& lock);
  std::string path_for(const Communicator& communicator);  // locked
  void write_to_file(const Communicator& communicator, const std::string& path);
  void warn_of_bad_folder(const Communicator& communicator);

  friend struct StopDumpWriter;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<const Communicator*, Entry> entries_;
  // The owner of a file name: the communicator with that attempt number, until the file has been removed.
  struct Name {
    std::uint64_t owner;
    bool written;
  };
  std::map<std::string, Name> paths_;
  int signal_ = 0;
  PrivateFd signal_event_;
  Watch watch_;
  std::thread writer_;
  bool stopping_ = false;
  bool write_error_logged_ = false;
  bool bad_folder_logged_ = false;
};

}  // namespace seto
