#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/soak/job.h"

namespace seto::soak {

// Requests dumps of a communicator while other threads use it, if the plan says so.
class Watcher final {
 public:
  Watcher(const Job& job, setoComm_t comm);
  ~Watcher() { stop(); }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  void stop();

 private:
  void watch(const Job& job, setoComm_t comm);

  std::mutex mutex_;
  std::condition_variable ended_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace seto::soak
