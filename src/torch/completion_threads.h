#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>

#include "src/torch/work.h"

namespace seto::torch_backend {

// The threads that settle works which nobody waits for: they run the callbacks of users, which may take the GIL, wait, and call
// this library again. One, and another for each whose callback is still waiting when there is more to do.
class Finisher final {
 public:
  static Finisher& of_process();

  // Before the first work is issued, so that a system that has no room for a thread says so in time.
  void start();
  // Does not block.
  void take(c10::intrusive_ptr<Work> work);
  // Before the interpreter ends, which ends threads that ask for it in the midst of a destructor: waits, for so long, until the
  // works at hand are settled. What comes later stays as it is, for the process to take with it.
  void stop(std::chrono::milliseconds patience);

 private:
  void start_one();  // locked
  [[noreturn]] void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<c10::intrusive_ptr<Work>> works_;
  std::size_t threads_ = 0;
  std::size_t busy_ = 0;
  bool stopped_ = false;
};

}  // namespace seto::torch_backend
