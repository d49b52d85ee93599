#pragma once

#include <memory>
#include <vector>

#include "src/core/connect/context.h"
#include "src/core/progress/task.h"

namespace seto {

// Tasks of any contexts that one thread drives together, because they may wait for each other.
class Crew final {
 public:
  // The task outlives the crew.
  void add(const std::shared_ptr<Context>& context, Task& task);

  // Hands the tasks over to their contexts, and drives until all have ended.
  void run();
  // Drives tasks that were handed over already. False: the deadline came first.
  bool wait(Deadline until);

 private:
  struct Job {
    Context* context;
    Task* task;
  };

  class Attendance;

  bool drive(Deadline until);
  bool make_passes(Deadline until);

  std::vector<std::shared_ptr<Context>> contexts_;
  std::vector<Job> jobs_;
};

}  // namespace seto
