#include "src/core/progress/progress.h"

#include <sched.h>

#include "src/core/progress/patience.h"
#include "src/core/progress/progress_scopes.h"

namespace seto {
namespace {

constexpr std::uint32_t kPassesBetweenLooks = 64;
constexpr std::uint32_t kDrivesBetweenLooks = 64;
constexpr std::uint32_t kMovesBetweenPumps = 16;
// Tasks move no more often by what came from afar: more moves than these are of shared memory.
constexpr std::uint32_t kMovesFromAfar = 64;

}  // namespace

// A waiter calls depart() next, which notifies others of remaining work. A waiter that attends at this very moment may be missed
// here; it checks by itself.
void Progress::release(std::uint32_t own_waits) {
  token_.store(false, std::memory_order_release);
  const bool left = own_waits == 0 && has_work();
  if (waiters_.load(std::memory_order_relaxed) <= own_waits && !left) return;
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

// Tasks that only pump need not be driven beside a task that is driven alone.
void Progress::run(Task& task) {
  if (pending_.load(std::memory_order_relaxed) == pumping_.load(std::memory_order_relaxed) && try_take()) {
    const Token held(*this);
    return drive_alone(task);
  }
  task.delayed();
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
      if (working_.load(std::memory_order_relaxed)) sleeper_.wake();  // the background thread may sleep in the kernel
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kStandByTime, [&] { return task.ended() || !token_.load(std::memory_order_relaxed); });
    }
  }
  return task.ended();
}

// No other task is under way: there is no list and no lock, only the task.
void Progress::drive_alone(Task& task) {
  Patience patience(spins_);
  far_moves_ = 0;  // where this task waits for something is not known yet
  for (bool over = false; !over;) {
    const Task::Step step = advance(task);
    if (step == Task::Step::ended) return;
    if (arrived_.load() > 0) {
      if (pending_.load() == pumping_.load()) {
        adopt_pumping();
      } else if (joins_arrivals(task)) {
        const Attendance here(*this);
        drive(task, Deadline::never());
        return;
      }
    }
    if (pump_too(step == Task::Step::moved)) {
      if (patience.moved() && inspect(task)) return;
      continue;
    }
    if (!patience.lasts(waits_far())) continue;
    if (inspect(task)) return;
    if (!patience.tired()) continue;
    Task::Step last = Task::Step::blocked;
    const auto look = [&] {
      last = advance(task);
      return last != Task::Step::blocked;
    };
    look_and_sleep(kSleepMs, look, [] { return true; });
    over = last == Task::Step::ended;
    if (last == Task::Step::moved) patience.moved();
  }
}

// Polls sockets when no task moves, and regularly when tasks move: shared-memory traffic must not starve sockets.
bool Progress::pump_too(bool moved) {
  if (moved && far_moves_ > 0) --far_moves_;
  if (moved && ++pumped_ % kMovesBetweenPumps != 0) return true;
  const Moved pumped = pump();
  if (pumped) far_moves_ = pumped.near ? 0 : kMovesFromAfar;
  return moved || pumped;
}

// The general case, with the token held: drives every task of the context until this one has ended.
bool Progress::drive(Task& task, Deadline until) {
  Patience patience(spins_);
  while (!task.ended()) {
    adopt();
    if (pump_too(round())) {
      if (!patience.moved() || task.ended()) continue;
      inspect_all();
      if (until.passed()) return task.ended();
      continue;
    }
    if (task.ended() || !patience.lasts(waits_far()) || inspect_all()) continue;
    if (until.passed()) return false;
    if (!patience.tired()) continue;
    look_and_sleep(
        kSleepMs, [this] { return round(); }, [] { return true; });
  }
  // A thread that runs one brief task after another looks around too: it may leave the background thread no time for that.
  if (++drives_ % kDrivesBetweenLooks == 0) inspect_all();
  return true;
}

void Progress::note_end(bool only_pumped) {
  if (only_pumped) pumping_.fetch_sub(1);
  pending_.fetch_sub(1);
}

bool Progress::round() {
  bool moved = false;
  const std::size_t ended = active_.visit([&](Task& task) {
    const bool only_pumps = task.only_pumps();
    const Task::Step step = advance(task);
    moved = moved || step != Task::Step::blocked;
    if (step == Task::Step::ended) note_end(only_pumps);
    return step == Task::Step::ended;
  });
  if (ended > 0) tell_waiters();
  return moved;
}

bool Progress::inspect_all() {
  const std::size_t ended = active_.visit([this](Task& task) {
    const bool only_pumps = task.only_pumps();
    if (!inspect(task)) return false;
    note_end(only_pumps);
    return true;
  });
  if (ended > 0) tell_waiters();
  return ended > 0;
}

bool Progress::pass() {
  if (pending_.load(std::memory_order_acquire) == 0 || !try_take()) return false;
  const Token held(*this);
  adopt();
  bool moved = pump_too(round());
  if (!moved || ++passes_ % kMovesBetweenLooks == 0) moved = inspect_all() || moved;
  return moved;
}

void Progress::pump_once() {
  if (!try_take()) return;
  const Token held(*this);
  (void)pump();
}

void Progress::relax(std::uint32_t idle_passes) {
  const std::uint32_t spins = spins_.load(std::memory_order_relaxed);
  if (idle_passes < spins) return spin_pause();
  if (idle_passes < spins + kPassesBetweenLooks || !try_take()) {
    sched_yield();
    return;
  }
  const Token held(*this);
  look_and_sleep(
      1,
      [this] {
        adopt();
        return round();
      },
      [] { return true; });
}

}  // namespace seto
