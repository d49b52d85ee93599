#include "src/core/communicator/queued_tasks.h"

#include "src/base/result.h"

namespace seto {

void WaitingTasks::add(Task& task) {
  const std::lock_guard lock(mutex_);
  tasks_.insert(&task);
}

bool WaitingTasks::claim(Task& task) {
  const std::lock_guard lock(mutex_);
  return tasks_.erase(&task) > 0;
}

Status WaitingTasks::in_vain() {
  const std::lock_guard lock(mutex_);
  for (const Task* const task : tasks_) SETO_TRY(task->in_vain());
  return {};
}

// A stream keeps a task until its turn, and asks here then: none is destroyed meanwhile.
std::uint32_t WaitingTasks::end_all(const Status& reason) {
  const std::lock_guard lock(mutex_);
  for (Task* const task : tasks_) task->end_unbegun(reason);
  const auto count = static_cast<std::uint32_t>(tasks_.size());
  tasks_.clear();
  return count;
}

}  // namespace seto
