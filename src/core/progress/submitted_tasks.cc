// The queue of a progress domain: tasks that any thread submits and the token holder adopts, and the waiters that hear of it.

#include <algorithm>
#include <new>

#include "src/core/progress/progress.h"

namespace seto {

// The token holder may be about to sleep: it reads `arrived_` after arm(), and the wakeup stays set. If no thread holds the
// token, the next holder reads it too. A waiter drives what it finds; the last waiter to depart notifies the background thread of
// remaining work.
void Progress::join(Task& task, Caller caller) {
  bool watched = false;
  {
    const std::lock_guard lock(mutex_);
    submitted_.push_back(&task);
    pending_.fetch_add(1);
    if (task.only_pumps()) pumping_.fetch_add(1);
    arrived_.fetch_add(1);
    if (caller == Caller::waits_next) ++awaited_;
    watched = caller == Caller::waits_next && watchful_;
  }
  if (!watched && waiters_.load() == 0) changed_.notify_all();
  if (token_.load()) sleeper_.wake();
}

// Without memory the tasks stay where they are, and the next round tries again.
void Progress::adopt() noexcept {
  if (arrived_.load(std::memory_order_acquire) == 0) return;
  const std::lock_guard lock(mutex_);
  if (pending_.load(std::memory_order_relaxed) == submitted_.size()) far_moves_ = 0;  // no other task is under way
  try {
    active_.add(submitted_);
  } catch (const std::bad_alloc&) {
    return;
  }
  arrived_.fetch_sub(static_cast<std::uint32_t>(submitted_.size()));
  submitted_.clear();
}

// Beside a task that is driven alone. The others stay where they are, for their order counts.
void Progress::adopt_pumping() noexcept {
  const std::lock_guard lock(mutex_);
  const auto first =
      std::stable_partition(submitted_.begin(), submitted_.end(), [](const Task* task) { return !task->only_pumps(); });
  try {
    active_.add({first, submitted_.end()});
  } catch (const std::bad_alloc&) {
    return;
  }
  arrived_.fetch_sub(static_cast<std::uint32_t>(submitted_.end() - first));
  submitted_.erase(first, submitted_.end());
}

// Lists a task that ran alone together with the arrived tasks. Returns false if there is no memory; the task continues alone.
bool Progress::joins_arrivals(Task& task) noexcept {
  try {
    Task* const alone = &task;
    active_.add({&alone, 1});
  } catch (const std::bad_alloc&) {
    return false;
  }
  pending_.fetch_add(1);
  return true;
}

// join() counts the task before it reads the number of waiters; this function changes the number of waiters before it reads the
// count. So at least one of the two sees the other.
void Progress::depart() {
  if (waiters_.fetch_sub(1) > 1 || pending_.load() == 0) return;
  const std::lock_guard lock(mutex_);
  if (has_work() || !watchful_) changed_.notify_all();  // a thread that polls by itself finds what may wait
}

bool Progress::has_work() const {
  const std::uint32_t pending = pending_.load();
  return pending > 0 && (pending > pumping_.load() || sleeper_.pumps_now());
}

// Wakes other threads that wait for tasks which the holder has ended. The holder is a waiter itself, unless it is the background
// thread.
void Progress::tell_waiters() {
  if (waiters_.load(std::memory_order_relaxed) < 2) return;
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

}  // namespace seto
