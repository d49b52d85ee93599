#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "src/torch/work.h"

namespace seto::torch_backend {

// The thread that settles works which nobody waits for: it runs the callbacks of users, which may take the GIL, wait, and call
// this library again. One for the process, started when it is first needed.
class Finisher final {
 public:
  static Finisher& of_process();

  // Does not block.
  void take(c10::intrusive_ptr<Work> work);
  // Before the interpreter ends, which ends threads that ask for it in the midst of a destructor: waits, for so long, until the
  // work at hand is settled. What comes later stays as it is, for the process to take with it.
  void stop(std::chrono::milliseconds patience);

 private:
  [[noreturn]] void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<c10::intrusive_ptr<Work>> works_;
  bool started_ = false;
  bool busy_ = false;
  bool stopped_ = false;
};

}  // namespace seto::torch_backend
