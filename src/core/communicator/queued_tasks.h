#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_set>

#include "src/core/progress/task.h"

namespace seto {

// The tasks of one communicator that were given to a host stream, and which of them the stream has not begun. Either the stream
// claims a queued task, or the communicator ends it: the first of the two gets it. Outlives the communicator, because the stream
// asks when the task's turn has come. Any thread.
class QueuedTasks final {
 public:
  void add(Task& task);
  // By the stream, which drives the task if it gets it. False: the task has ended, and its communicator may be destroyed.
  [[nodiscard]] bool claim(Task& task);
  // By the communicator: the first failure that dooms a queued task, or ok.
  [[nodiscard]] Status in_vain();
  // By the communicator: ends all queued tasks.
  void end_all(const Status& reason);
  // A task that the stream had claimed has ended.
  void task_ended() { under_way_.fetch_sub(1, std::memory_order_release); }
  // Tasks that have not ended, queued or claimed.
  [[nodiscard]] std::uint32_t under_way() const { return under_way_.load(std::memory_order_acquire); }

 private:
  std::mutex mutex_;
  std::unordered_set<Task*> tasks_;  // queued
  std::atomic<std::uint32_t> under_way_{0};
};

}  // namespace seto
