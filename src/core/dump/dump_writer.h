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

namespace seto {

class Communicator;

// Writes dumps that nobody calls for: of a communicator that has failed, of all of them after a signal. On a thread of its own,
// started when there is something to write: a file system that hangs must stop neither the ranks nor their signs of life.
// Mutable state of the process, as signals are. Any thread, no lock of a communicator held.
class DumpService final {
 public:
  // Stays until the process has ended; what was asked for is written before.
  static DumpService& of_process();

  // From now on that signal asks for all. A process has one.
  Status listen_to(int signal);
  // Communicators are known from add, when nothing of them is still being made, to remove, which waits for a dump of it, and
  // writes what is still to be written.
  void add(const Communicator& communicator);
  void remove(const Communicator& communicator);
  // Soon.
  void request(const Communicator& communicator);
  void request_all();

  DumpService(const DumpService&) = delete;
  DumpService& operator=(const DumpService&) = delete;

 private:
  struct Entry {
    bool wanted = false;
    bool busy = false;
  };

  DumpService() = default;
  void start_writer();  // locked
  void work();
  void stop();
  // Unlocked meanwhile.
  void write(const Communicator& communicator, Entry& entry, std::unique_lock<std::mutex>& lock);
  std::string path_for(const Communicator& communicator);  // locked
  void write_to_file(const Communicator& communicator, const std::string& path);

  friend struct StopDumpService;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<const Communicator*, Entry> entries_;
  // Whose a file is: that communicator's, by the attempt that made it, until somebody has taken the file away.
  struct Name {
    std::uint64_t owner;
    bool written;
  };
  std::map<std::string, Name> paths_;
  int signal_ = 0;
  PrivateFd asked_;
  Watch watch_;
  std::thread writer_;
  bool stopping_ = false;
  bool complained_ = false;
};

}  // namespace seto
