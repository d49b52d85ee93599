#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/base/far_link.h"
#include "src/base/result.h"
#include "src/core/progress/active_tasks.h"
#include "src/core/progress/task.h"

namespace seto {

// How a context sleeps after spinning and yielding without progress.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  // From now on a change that this context waits for wakes it. The caller checks once more, then sleeps or calls disarm().
  virtual void arm() = 0;
  virtual void disarm() = 0;
  // Returns when woken, or after the time has passed.
  virtual void await_wakeup(int milliseconds) = 0;
  // Any thread.
  virtual void wake() = 0;
  // Called by the token holder when no task moves: moves what has no task, such as bytes between sockets and streams. If
  // something moved, tasks may be able to continue.
  virtual Moved pump() { return {}; }
  // Any thread: tasks that only pump are to be driven now. False: they may wait some milliseconds for a thread that pumps anyway.
  [[nodiscard]] virtual bool pumps_now() const { return true; }
};

// Drives the tasks of a context. One token says which thread does so: a thread that waits for a task takes the token and drives
// inline (without any list if its task is the only one); a background thread takes it only while no thread waits. Where all that
// is left may wait (Sleeper::pumps_now), the background thread is not woken for it and takes it after a millisecond: it would be
// in the way of the next call.
//
// Its sources: progress.cc (the token holder), submitted_tasks.cc (the queue), background_thread.cc, guarded_steps.cc
// (exceptions).
class Progress final {
 public:
  // `spins`: polls in quick succession before a thread yields its core; 0 where ranks outnumber cores.
  Progress(Sleeper& sleeper, std::uint32_t spins) : sleeper_(sleeper), spins_(spins) {}
  ~Progress() { stop(); }

  // Ends the background thread. Tasks that are submitted later, or have not ended, stay as they are.
  void stop();

  // A blocking call: drives a new task until it has ended.
  void run(Task& task);
  // Hands a task to the background thread, or to a thread that waits for this or another task.
  Status submit(Task& task);
  // Starts the background thread if there is none. After success, submit() cannot fail.
  Status prepare();
  // As submit(), for a task whose caller will wait for it, or call pass(). With `waits_next` the background thread is not woken
  // if such a task was submitted a moment ago: it then polls every millisecond for a tenth of a second.
  enum class Caller : std::uint8_t { leaves, waits_next };
  void join(Task& task, Caller caller = Caller::leaves);
  // Drives until a submitted task has ended or the deadline has passed; true if the task ended.
  bool wait(Task& task, Deadline until);
  // Drives all submitted tasks once; false if there was no task, or another thread holds the token.
  bool pass();
  // Polls the sockets if no other thread drives: for a thread that does not wait but asks what has arrived.
  void pump_once();
  // Sleeps or yields, for a thread that calls pass() on several contexts. Between attend() and depart() such a thread counts as a
  // waiter, and the background thread leaves the work to it.
  void relax(std::uint32_t idle_passes);
  void attend() { waiters_.fetch_add(1); }
  void depart();

  void set_spins(std::uint32_t spins) { spins_.store(spins, std::memory_order_relaxed); }
  [[nodiscard]] bool idle() const { return pending_.load(std::memory_order_acquire) == 0; }

 private:
  class Attendance;
  class Token;
  class Armed;

  bool try_take() { return !token_.load(std::memory_order_relaxed) && !token_.exchange(true, std::memory_order_acquire); }
  void release(std::uint32_t own_waits = 0);
  // A task is under way that does not only pump, or pumps now.
  [[nodiscard]] bool has_work() const;
  void drive_alone(Task& task);
  bool drive(Task& task, Deadline until);
  void tell_waiters();
  // The following functions need the token.
  // One step of a task. An exception ends the task with a failure; none leaves these functions.
  Task::Step advance(Task& task) noexcept;
  bool inspect(Task& task) noexcept;
  bool give_up(Task& task) noexcept;
  Moved pump() noexcept;
  bool round();  // every task that can move once; true if something moved
  void note_end(bool only_pumped);
  bool pump_too(bool moved);  // the sockets as well, unless tasks move and it was their turn a moment ago
  [[nodiscard]] bool waits_far() const { return far_moves_ > 0; }
  bool inspect_all();     // true if a task ended
  void adopt() noexcept;  // takes over submitted tasks
  void adopt_pumping() noexcept;
  bool joins_arrivals(Task& task) noexcept;
  // Arms, checks once more with `look`, and sleeps if that moved nothing, nothing arrived and `may_sleep` agrees.
  template <class Look, class MaySleep>
  void look_and_sleep(int milliseconds, const Look& look, const MaySleep& may_sleep);
  void work();
  void work_until_wanted();
  [[nodiscard]] bool background_goes_on() const;

  Sleeper& sleeper_;
  const Status out_of_memory_{Code::unavailable,
                              "out of memory in a call that was under way"};  // made in advance, while there is memory
  const Status threw_{Code::internal, "an exception ended a call that was under way"};
  std::atomic<std::uint32_t> spins_;
  std::atomic<bool> token_{false};
  std::atomic<std::uint32_t> waiters_{0};
  std::atomic<std::uint32_t> arrived_{0};  // submitted, not yet adopted
  std::atomic<std::uint32_t> pending_{0};  // submitted, not yet ended
  std::atomic<std::uint32_t> pumping_{0};  // of them: only_pumps(); never counted before or longer than in pending_
  ActiveTasks active_;                     // used by the token holder
  std::uint32_t pumped_ = 0;               // token held: moves since the sockets were last polled
  std::uint32_t far_moves_ = 0;            // token held: the next moves are due to what came from afar
  std::uint32_t passes_ = 0;               // token held: passes that moved something
  std::uint32_t drives_ = 0;               // token held: waits that ended with their task

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Task*> submitted_;
  std::uint64_t awaited_ = 0;         // number of tasks whose callers waited next, since the start
  bool watchful_ = false;             // the background thread polls by itself
  std::atomic<bool> working_{false};  // the background thread holds the token
  std::atomic<bool> stopping_{false};
  std::thread worker_;
};

}  // namespace seto
