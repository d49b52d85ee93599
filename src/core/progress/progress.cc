#include "src/core/progress/progress.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "src/base/clock.h"
#include "src/base/thread.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace seto {
namespace {

// How long yields go on before a wait sleeps in the kernel. A sleep and its wake cost some 10 us, so a wait that has already
// taken twenty times that loses little.
constexpr std::uint64_t kYieldNs = 200'000;
// A sleeper that misses its bell finds out by itself; see Context::await_bell.
constexpr int kSleepMs = 5;
constexpr std::uint32_t kPassesBetweenLooks = 64;
constexpr std::uint32_t kYieldsBetweenLooks = 32;
// Traffic that never stops hides neither a deadline nor a lost peer of the others; an advance of data takes at least some 100 ns.
constexpr std::uint32_t kMovesBetweenLooks = 1024;
constexpr std::uint32_t kMovesBetweenPumps = 16;
// A pause lasts some 10 ns, a sixth of a near flight.
constexpr std::uint32_t kLooksWithoutPause = 32;
// Waiters without the token look themselves this often, should a hand-over be missed.
constexpr std::chrono::milliseconds kStandByTime{1};
// The background thread goes on to look for itself after the last task whose caller waited next, this many times at most.
constexpr int kWatchfulLooks = 100;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

// One thread's wait: spins, then yields, then sleeps; from the start again whenever something moved. Looking around and reading
// the clock cost as much as a yield, so they wait for many of those.
class Progress::Patience {
 public:
  explicit Patience(Progress& progress) : progress_(progress) {}

  // True: it has moved for long, time to look around all the same.
  bool moved() {
    spun_ = 0;
    yields_ = 0;
    yielding_since_ = 0;
    return ++moves_ % kMovesBetweenLooks == 0;
  }

  // Nothing moved. True: it has lasted, time to look around.
  bool lasts() {
    if (spun_ < progress_.spins_.load(std::memory_order_relaxed)) {
      if (++spun_ > kLooksWithoutPause) pause();
      return false;
    }
    sched_yield();
    return ++yields_ % kYieldsBetweenLooks == 0;
  }

  // After lasts(), and after looking around: is it time to sleep?
  [[nodiscard]] bool tired() {
    const std::uint64_t now = monotonic_ns();
    if (yielding_since_ == 0) yielding_since_ = now;
    return now - yielding_since_ > kYieldNs;
  }

 private:
  Progress& progress_;
  std::uint32_t spun_ = 0;
  std::uint32_t yields_ = 0;
  std::uint32_t moves_ = 0;
  std::uint64_t yielding_since_ = 0;
};

// A task may throw, for want of memory: whoever attends departs all the same, after it has let go of the token.
class Progress::Attendance {
 public:
  explicit Attendance(Progress& progress) : progress_(progress) { progress_.attend(); }
  ~Attendance() { progress_.depart(); }
  Attendance(const Attendance&) = delete;
  Attendance& operator=(const Attendance&) = delete;

 private:
  Progress& progress_;
};

class Progress::Token {
 public:
  // `own_waits`: 1 for a waiter.
  explicit Token(Progress& progress, std::uint32_t own_waits = 0) : progress_(progress), own_waits_(own_waits) {}
  ~Token() { progress_.release(own_waits_); }
  Token(const Token&) = delete;
  Token& operator=(const Token&) = delete;

 private:
  Progress& progress_;
  const std::uint32_t own_waits_;
};

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  sleeper_.wake();
  if (worker_.joinable()) worker_.join();
}

// A waiter departs next, and tells then of what is left. One that attends at this very moment may be overlooked: it looks by
// itself.
void Progress::release(std::uint32_t own_waits) {
  token_.store(false, std::memory_order_release);
  const bool left = own_waits == 0 && pending_.load(std::memory_order_relaxed) > 0;
  if (waiters_.load(std::memory_order_relaxed) <= own_waits && !left) return;
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void Progress::run(Task& task) {
  if (pending_.load(std::memory_order_relaxed) == 0 && try_take()) {
    const Token held(*this);
    return drive_alone(task);
  }
  join(task);
  wait(task, Deadline::never());
}

bool Progress::wait(Task& task, Deadline until) {
  const Attendance here(*this);
  while (!task.ended() && !until.passed()) {
    if (try_take()) {
      const Token held(*this, 1);
      drive(task, until);
    } else {
      if (working_.load(std::memory_order_relaxed)) sleeper_.wake();  // it may sleep in the kernel
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kStandByTime, [&] { return task.ended() || !token_.load(std::memory_order_relaxed); });
    }
  }
  return task.ended();
}

// Whoever joins meanwhile counts the task before it looks for waiters, and here it is the other way round: one sees the other.
void Progress::depart() {
  if (waiters_.fetch_sub(1) > 1 || pending_.load() == 0) return;
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

// Nothing else is under way: no list, no lock, just the task.
void Progress::drive_alone(Task& task) {
  Patience patience(*this);
  for (;;) {
    const Task::Step step = task.advance();
    if (step == Task::Step::ended) return;
    if (arrived_.load(std::memory_order_relaxed) > 0) {  // no longer alone
      const Attendance here(*this);
      active_.push_back(&task);
      pending_.fetch_add(1);
      drive(task, Deadline::never());
      return;
    }
    if (pump_too(step == Task::Step::moved)) {
      if (patience.moved() && task.inspect()) return;
      continue;
    }
    if (!patience.lasts()) continue;
    if (task.inspect()) return;
    if (!patience.tired()) continue;
    sleeper_.arm();
    const bool pumped = sleeper_.pump();
    const Task::Step last = task.advance();
    if (last == Task::Step::ended) {
      sleeper_.disarm();
      return;
    }
    if (last == Task::Step::blocked && !pumped && arrived_.load(std::memory_order_relaxed) == 0) sleeper_.await_bell(kSleepMs);
    sleeper_.disarm();
    if (last == Task::Step::moved) patience.moved();
  }
}

// Sockets are looked at when nothing else moves, and now and then when much does: shared memory must not starve them.
bool Progress::pump_too(bool moved) {
  if (moved && ++pumped_ % kMovesBetweenPumps != 0) return true;
  return sleeper_.pump() || moved;
}

// The general case, token held: every task of the context until this one has ended.
bool Progress::drive(Task& task, Deadline until) {
  Patience patience(*this);
  while (!task.ended()) {
    adopt();
    if (pump_too(round())) {
      if (!patience.moved() || task.ended()) continue;
      inspect_all();
      if (until.passed()) return task.ended();
      continue;
    }
    if (task.ended() || !patience.lasts() || inspect_all()) continue;
    if (until.passed()) return false;
    if (!patience.tired()) continue;
    sleeper_.arm();
    if (!round() && !sleeper_.pump() && arrived_.load(std::memory_order_relaxed) == 0) sleeper_.await_bell(kSleepMs);
    sleeper_.disarm();
  }
  return true;
}

// Whoever holds the token may be about to sleep: it looks at `arrived_` after it has armed, and the bell stays rung. Where nobody
// holds it, whoever takes it next looks too. A waiter drives what it finds; the last that departs tells of what is left.
void Progress::join(Task& task, Caller caller) {
  bool watched = false;
  {
    const std::lock_guard lock(mutex_);
    submitted_.push_back(&task);
    pending_.fetch_add(1);
    arrived_.fetch_add(1);
    if (caller == Caller::waits_next) ++awaited_;
    watched = caller == Caller::waits_next && watchful_;
  }
  if (!watched && waiters_.load() == 0) changed_.notify_all();
  if (token_.load()) sleeper_.wake();
}

Status Progress::prepare() {
  const std::lock_guard lock(mutex_);
  if (worker_.joinable()) return {};
  SETO_ASSIGN(worker_, start_thread("seto-progress", [this] { work(); }));
  return {};
}

Status Progress::submit(Task& task) {
  SETO_TRY(prepare());
  join(task);
  return {};
}

void Progress::adopt() {
  if (arrived_.load(std::memory_order_acquire) == 0) return;
  const std::lock_guard lock(mutex_);
  active_.insert(active_.end(), submitted_.begin(), submitted_.end());
  arrived_.fetch_sub(static_cast<std::uint32_t>(submitted_.size()));
  submitted_.clear();
}

bool Progress::round() {
  bool moved = false;
  std::size_t kept = 0;
  for (Task* task : active_) {
    const Task::Step step = task->advance();
    moved = moved || step != Task::Step::blocked;
    if (step == Task::Step::ended) {
      pending_.fetch_sub(1);
    } else {
      active_[kept++] = task;
    }
  }
  if (kept < active_.size()) {
    active_.resize(kept);
    tell_waiters();
  }
  return moved;
}

// Others wait for tasks that the holder ends. The holder is a waiter itself, unless it is the background thread.
void Progress::tell_waiters() {
  if (waiters_.load(std::memory_order_relaxed) < 2) return;
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

bool Progress::inspect_all() {
  const std::size_t before = active_.size();
  std::erase_if(active_, [this](Task* task) {
    if (!task->inspect()) return false;
    pending_.fetch_sub(1);
    return true;
  });
  if (active_.size() == before) return false;
  tell_waiters();
  return true;
}

bool Progress::pass() {
  if (pending_.load(std::memory_order_acquire) == 0 || !try_take()) return false;
  adopt();
  bool moved = pump_too(round());
  if (!moved || ++passes_ % kMovesBetweenLooks == 0) moved = inspect_all() || moved;
  release();
  return moved;
}

void Progress::pump_once() {
  if (!try_take()) return;
  (void)sleeper_.pump();
  release();
}

void Progress::relax(std::uint32_t idle_passes) {
  const std::uint32_t spins = spins_.load(std::memory_order_relaxed);
  if (idle_passes < spins) return pause();
  if (idle_passes < spins + kPassesBetweenLooks || !try_take()) {
    sched_yield();
    return;
  }
  sleeper_.arm();
  adopt();
  if (!round() && !sleeper_.pump()) sleeper_.await_bell(1);
  sleeper_.disarm();
  release();
}

// The background thread: works only while there is work and nobody waits for it. A release of the token and an arrival may miss
// each other (the token is given up without a barrier, which every small call would pay for), so while there is work this thread
// looks by itself now and then.
void Progress::work() {
  std::unique_lock lock(mutex_);
  const auto wanted = [this] {
    return stopping_ || (pending_.load() > 0 && waiters_.load() == 0 && !token_.load(std::memory_order_relaxed));
  };
  std::uint64_t awaited = 0;
  for (int looks = kWatchfulLooks;;) {
    while (!wanted()) {
      if (std::exchange(awaited, awaited_) != awaited_)
        looks = 0;
      else if (looks < kWatchfulLooks)
        ++looks;
      watchful_ = pending_.load() > 0 || looks < kWatchfulLooks;
      if (watchful_)
        changed_.wait_for(lock, kStandByTime);
      else
        changed_.wait(lock);
    }
    if (stopping_) return;
    watchful_ = false;
    lock.unlock();
    if (try_take()) {
      working_.store(true, std::memory_order_relaxed);
      work_until_wanted();
      working_.store(false, std::memory_order_relaxed);
      release();
    }
    lock.lock();
  }
}

// Token held: until there is nothing left to do, somebody waits, or the end has come.
void Progress::work_until_wanted() {
  Patience patience(*this);
  while (pending_.load(std::memory_order_relaxed) > 0 && waiters_.load() == 0 && !stopping_) {
    adopt();
    if (pump_too(round())) {
      if (patience.moved()) inspect_all();
      continue;
    }
    if (!patience.lasts() || inspect_all() || !patience.tired()) continue;
    sleeper_.arm();
    if (!round() && !sleeper_.pump() && arrived_.load(std::memory_order_relaxed) == 0 && waiters_.load() == 0 && !stopping_)
      sleeper_.await_bell(kSleepMs);
    sleeper_.disarm();
  }
}

}  // namespace seto
