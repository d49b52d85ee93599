#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/base/status.h"

namespace seto {

class ActiveTasks;

// Tasks that begin in the order of their turns, such as the operations of one communicator. Outlives its tasks.
class TaskSequence final {
 private:
  friend class ActiveTasks;
  std::size_t chain_ = 0;  // token held: where the latest chain of these tasks is, if there is one
};

// Work that a progress domain drives until it has ended. The object must live until then; its maker waits for that.
class Task {
 public:
  enum class Step : std::uint8_t { blocked, moved, ended };

  virtual ~Task() = default;

  // Called by the token holder: continues as far as possible. Never blocks.
  virtual Step advance() = 0;
  // Called on the same thread, now and then while nothing moves: checks for reasons to end early (peers, deadline, abort). True
  // if the task ended.
  virtual bool inspect() = 0;

  // It does nothing but pump, which each thread that drives does anyway. No caller waits for it. Always the same for a task.
  [[nodiscard]] virtual bool only_pumps() const { return false; }
  // Called by Progress::run() on the thread that made the task, if the task does not advance at once.
  virtual void delayed() {}
  // False: it has not begun, and no task with a later turn of its sequence can begin either.
  [[nodiscard]] virtual bool begun() const { return true; }
  [[nodiscard]] bool ended() const { return ended_.load(std::memory_order_acquire); }
  // Called by the thread that drives, when advance or inspect threw. True: the task has ended. False: a later advance or inspect
  // ends it, or throws again.
  virtual bool give_up(const Status& reason) {
    end(reason);
    return true;
  }
  // Called by QueuedTasks, under its lock, for a task that has not been started; replaces advance() and inspect().
  void end_unbegun(const Status& reason) { end(reason); }
  // The reason why the task can no longer succeed, even before its turn; ok if there is none.
  [[nodiscard]] virtual Status in_vain() const { return {}; }
  // Valid only after the end.
  [[nodiscard]] const Status& status() const { return status_; }

 protected:
  Task() = default;
  // `sequence`: null if the task may begin at any time.
  Task(TaskSequence* sequence, std::uint64_t turn) : sequence_(sequence), turn_(turn) {}
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  // Must be the last thing that advance() or inspect() does with this object: a waiter may destroy it at once.
  void end(Status status) {
    status_ = std::move(status);
    ended_.store(true, std::memory_order_release);
  }

 private:
  friend class ActiveTasks;

  TaskSequence* const sequence_ = nullptr;
  const std::uint64_t turn_ = 0;
  Task* next_ = nullptr;  // of ActiveTasks
  Status status_;
  std::atomic<bool> ended_{false};
};

}  // namespace seto
