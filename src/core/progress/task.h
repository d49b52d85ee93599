#pragma once

#include <atomic>
#include <cstdint>

#include "src/base/status.h"

namespace seto {

// Something that a progress domain drives to its end. It lives until it has ended; whoever made it waits for that.
class Task {
 public:
  enum class Step : std::uint8_t { blocked, moved, ended };

  virtual ~Task() = default;

  // On the thread that holds the token: goes as far as it can. Never blocks.
  virtual Step advance() = 0;
  // On the same thread, now and then while nothing moves: looks for reasons to end early (peers, deadline, abort). True if it
  // ended.
  virtual bool inspect() = 0;

  [[nodiscard]] bool ended() const { return ended_.load(std::memory_order_acquire); }
  // For a task that nobody drives yet, by WaitingTasks under its lock. In place of all that:
  void end_unbegun(const Status& reason) { end(reason); }
  // Why it cannot end well any more, whenever its turn comes.
  [[nodiscard]] virtual Status in_vain() const { return {}; }
  // Only after the end.
  [[nodiscard]] const Status& status() const { return status_; }

 protected:
  Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  // The last thing that advance or inspect does with this object: a waiter may destroy it at once.
  void end(Status status) {
    status_ = std::move(status);
    ended_.store(true, std::memory_order_release);
  }

 private:
  Status status_;
  std::atomic<bool> ended_{false};
};

}  // namespace seto
