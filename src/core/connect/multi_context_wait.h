#pragma once

#include <memory>
#include <vector>

#include "src/core/connect/context.h"
#include "src/core/progress/task.h"

namespace seto {

// One thread drives tasks of several contexts together, because they may wait for each other.
class MultiContextWait final {
 public:
  // The task must outlive this object.
  void add(const std::shared_ptr<Context>& context, Task& task);

  // Submits the tasks to their contexts and drives until all have ended.
  void run();
  // Drives tasks that were submitted already. False: the deadline passed first.
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
