#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "src/torch/work.h"

namespace seto::torch_backend {

// The thread that settles works which nobody waits for: it runs the callbacks of users, which may take the GIL, wait, and call
// this library again. One for the process, started when it is first needed; it never ends, so that the end of the interpreter
// waits for nobody.
class Finisher final {
 public:
  static Finisher& of_process();

  // Does not block.
  void take(c10::intrusive_ptr<Work> work);

 private:
  [[noreturn]] void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<c10::intrusive_ptr<Work>> works_;
  bool started_ = false;
};

}  // namespace seto::torch_backend
