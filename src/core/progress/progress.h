#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/core/progress/task.h"

namespace seto {

// How a context sleeps when spinning and yielding found nothing.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  // From now on, whoever changes what this context waits for wakes it. Followed by one more look, then by sleep or disarm.
  virtual void arm() = 0;
  virtual void disarm() = 0;
  // Until woken, or the time has passed.
  virtual void await_bell(int milliseconds) = 0;
  // From any thread.
  virtual void wake() = 0;
  // On the holder of the token, when no task moves: what has to be moved by hand, as bytes between sockets and streams. True:
  // something was, so tasks may go on.
  virtual bool pump() { return false; }
};

// Who waits, works. One token says which thread drives the tasks of a context: a waiter takes it and drives inline, alone where
// it is alone; a background thread takes it only while nobody waits.
class Progress final {
 public:
  // `spins`: looks in quick succession before a thread gives up its core; none where ranks outnumber cores.
  Progress(Sleeper& sleeper, std::uint32_t spins) : sleeper_(sleeper), spins_(spins) {}
  ~Progress();

  // Drives a new task until it has ended: a blocking call.
  void run(Task& task);
  // The background thread takes care of it, unless somebody waits for it or for another.
  Status submit(Task& task);
  // Makes sure that there is a background thread: after it, submit cannot fail.
  Status prepare();
  // As submit, for a task that the caller is going to wait for, or makes passes for. One that waits next wakes nobody for it
  // if such a task came a moment ago: the background thread then looks for itself every millisecond, for a tenth of a second.
  enum class Caller : std::uint8_t { leaves, waits_next };
  void join(Task& task, Caller caller = Caller::leaves);
  // Drives until a submitted task has ended, or the deadline has passed; true if it ended.
  bool wait(Task& task, Deadline until);
  // One round over all submitted tasks if nobody else is at it; false if there was nothing to do, or no token.
  bool pass();
  // The sockets alone, if nobody drives: for a thread that waits for nothing, and asks what came.
  void pump_once();
  // Sleeps or yields, for a thread that makes passes over several contexts. Between attend and depart it counts as a waiter, and
  // the background thread leaves the work to it.
  void relax(std::uint32_t idle_passes);
  void attend() { waiters_.fetch_add(1); }
  void depart();

  void set_spins(std::uint32_t spins) { spins_.store(spins, std::memory_order_relaxed); }
  [[nodiscard]] bool idle() const { return pending_.load(std::memory_order_acquire) == 0; }

 private:
  class Patience;
  class Attendance;
  class Token;

  bool try_take() { return !token_.load(std::memory_order_relaxed) && !token_.exchange(true, std::memory_order_acquire); }
  void release(std::uint32_t own_waits = 0);
  void drive_alone(Task& task);
  bool drive(Task& task, Deadline until);
  void tell_waiters();
  bool round();  // token held: every task once; true if something moved
  bool pump_too(bool moved);
  bool inspect_all();  // token held
  void adopt();        // token held: takes over what was submitted
  void work();
  void work_until_wanted();

  Sleeper& sleeper_;
  std::atomic<std::uint32_t> spins_;
  std::atomic<bool> token_{false};
  std::atomic<std::uint32_t> waiters_{0};
  std::atomic<std::uint32_t> arrived_{0};  // submitted, not adopted
  std::atomic<std::uint32_t> pending_{0};  // submitted, not ended
  std::vector<Task*> active_;              // of the token holder
  std::uint32_t pumped_ = 0;               // token held: moves since the sockets were last looked at
  std::uint32_t passes_ = 0;               // as well: those that moved something

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Task*> submitted_;
  std::uint64_t awaited_ = 0;         // tasks whose callers waited next, ever
  bool watchful_ = false;             // the background thread looks again by itself
  std::atomic<bool> working_{false};  // the background thread has the token
  std::atomic<bool> stopping_{false};
  std::thread worker_;
};

}  // namespace seto
