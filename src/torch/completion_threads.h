#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>

#include "src/torch/work.h"

namespace seto::torch_backend {

// The threads that complete works for which no thread waits. They run the users' callbacks, which may take the GIL, wait, and
// call this library again. There is one thread, and one more for each callback that is still waiting when more works have ended.
class CompletionThreads final {
 public:
  static CompletionThreads& of_process();

  // Called before the first work is issued, so that a system that cannot start a thread reports it in time.
  void start();
  // Hands over a work that has ended. Does not block.
  void take(c10::intrusive_ptr<Work> work);
  // Called before the interpreter ends, which would stop threads that ask for the GIL inside a destructor. Waits at most this
  // long until the current works are completed. Later works stay as they are until the process ends.
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
