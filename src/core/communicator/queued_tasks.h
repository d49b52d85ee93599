#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_set>

#include "src/core/progress/task.h"

namespace seto {

// The tasks of one communicator that stand in a stream and that nobody drives yet. Either the stream comes to a task, or the
// communicator ends it where it stands: whoever is first has it. Outlives the communicator, since the stream asks when it is the
// task's turn. Any thread.
class WaitingTasks final {
 public:
  void add(Task& task);
  // By the stream, which drives the task if it gets it. False: it has ended, and its communicator may be gone.
  [[nodiscard]] bool claim(Task& task);
  // By the communicator. Why one of them cannot end well any more, if so.
  [[nodiscard]] Status in_vain();
  // How many they were.
  std::uint32_t end_all(const Status& reason);

 private:
  std::mutex mutex_;
  std::unordered_set<Task*> tasks_;
};

}  // namespace seto
