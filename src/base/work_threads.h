#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "src/base/fork.h"
#include "src/base/status.h"

namespace seto {

// Work that blocks, each piece on a thread of the library, at most `most` at a time and the others after them in order. A thread
// that finds no work ends. Any thread.
class WorkThreads final {
 public:
  WorkThreads(const char* name, std::size_t most) : name_(name), most_(most) {}
  WorkThreads(const WorkThreads&) = delete;
  WorkThreads& operator=(const WorkThreads&) = delete;
  ~WorkThreads() { stop(); }

  // Neither blocks nor waits. Fails if no thread can be started and none is there.
  [[nodiscard]] Status add(std::function<void()> work);
  // Work that has not begun is dropped. Sets stopping() and waits for the work that has begun. Not from such a thread.
  void stop();
  // How many threads work at this moment.
  [[nodiscard]] std::size_t active() const;
  // Ends deadlines of the work (Deadline::unless). Valid as long as the object.
  [[nodiscard]] const std::atomic<bool>& stopping() const { return stopping_; }

 private:
  void run();

  const char* const name_;
  const std::size_t most_;
  const std::uint32_t generation_ = fork_generation();  // a forked child has none of the threads
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  std::vector<std::thread::id> ended_;  // of threads_: they run no work any more
  std::size_t active_ = 0;
};

}  // namespace seto
