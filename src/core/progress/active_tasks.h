#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/core/progress/task.h"

namespace seto {

// The tasks that the holder of the progress token drives. Tasks of one sequence form a chain, and a visit ends at the first task
// of a chain that has not begun: a group of n collectives costs n visits, not n for each of them.
class ActiveTasks final {
 public:
  // Throws std::bad_alloc, and has then taken none of them.
  void add(std::span<Task* const> tasks);

  // Calls visit(task) for each task that can be under way or can begin. True: the task has ended, and may be destroyed already.
  // Returns the number of tasks that have ended.
  template <class Visit>
  std::size_t visit(const Visit& visit);

 private:
  struct Chain {
    Task* first = nullptr;
    Task* last = nullptr;
    TaskSequence* sequence = nullptr;  // null: a single task
  };

  // Null: the task needs a chain of its own.
  Chain* chain_for(const Task& task);
  // True if no task of the chain is left.
  template <class Visit>
  static bool visit_chain(Chain& chain, const Visit& visit, std::size_t& ended);

  std::vector<Chain> chains_;
};

template <class Visit>
std::size_t ActiveTasks::visit(const Visit& visit) {
  std::size_t ended = 0;
  std::size_t kept = 0;
  for (Chain& chain : chains_) {
    if (visit_chain(chain, visit, ended)) continue;
    if (chain.sequence != nullptr) chain.sequence->chain_ = kept;
    chains_[kept++] = chain;
  }
  chains_.resize(kept);
  return ended;
}

// A task may end during its visit, so its fields are read before.
template <class Visit>
bool ActiveTasks::visit_chain(Chain& chain, const Visit& visit, std::size_t& ended) {
  Task* before = nullptr;
  for (Task* task = chain.first; task != nullptr;) {
    Task* const next = task->next_;
    if (visit(*task)) {
      ++ended;
      (before == nullptr ? chain.first : before->next_) = next;
      if (next == nullptr) chain.last = before;
    } else {
      if (!task->begun()) break;
      before = task;
    }
    task = next;
  }
  return chain.first == nullptr;
}

}  // namespace seto
