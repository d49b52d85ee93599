#include "src/core/progress/active_tasks.h"

namespace seto {

void ActiveTasks::add(std::span<Task* const> tasks) {
  // Enough even if every task needs its own chain, so that nothing can throw after the first has been taken. Grows in proportion,
  // or single additions would copy all chains each time.
  if (chains_.capacity() - chains_.size() < tasks.size()) chains_.reserve(2 * (chains_.size() + tasks.size()));
  for (Task* const task : tasks) {
    task->next_ = nullptr;
    if (Chain* const chain = chain_for(*task)) {
      chain->last->next_ = task;
      chain->last = task;
      continue;
    }
    if (task->sequence_ != nullptr) task->sequence_->chain_ = chains_.size();
    chains_.push_back({task, task, task->sequence_});
  }
}

// Tasks of host streams may arrive in another order than that of their turns. One that arrives too late for the chain's end must
// not wait behind a later turn, so it gets its own chain. The index may be that of another sequence by now: a chain with this
// sequence has tasks that have not ended, so that the sequence is the same object.
ActiveTasks::Chain* ActiveTasks::chain_for(const Task& task) {
  if (task.sequence_ == nullptr || task.sequence_->chain_ >= chains_.size()) return nullptr;
  Chain& chain = chains_[task.sequence_->chain_];
  return chain.sequence == task.sequence_ && chain.last->turn_ < task.turn_ ? &chain : nullptr;
}

}  // namespace seto
