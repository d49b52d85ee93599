#include "src/core/communicator/queued_tasks.h"

#include "src/base/result.h"

namespace seto {

void QueuedTasks::add(Task& task) {
  const std::lock_guard lock(mutex_);
  tasks_.insert(&task);  // may throw, so the task is counted after it
  under_way_.fetch_add(1, std::memory_order_relaxed);
}

bool QueuedTasks::claim(Task& task) {
  const std::lock_guard lock(mutex_);
  return tasks_.erase(&task) > 0;
}

Status QueuedTasks::in_vain() {
  const std::lock_guard lock(mutex_);
  for (const Task* const task : tasks_) SETO_TRY(task->in_vain());
  return {};
}

// The stream keeps each task until it has called claim() for it, so no task is destroyed meanwhile.
void QueuedTasks::end_all(const Status& reason) {
  const std::lock_guard lock(mutex_);
  for (Task* const task : tasks_) task->end_unbegun(reason);
  under_way_.fetch_sub(static_cast<std::uint32_t>(tasks_.size()), std::memory_order_release);
  tasks_.clear();
}

}  // namespace seto
