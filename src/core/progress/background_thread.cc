// The background thread of a progress domain: it drives tasks while no thread waits for one.

#include <utility>

#include "src/base/thread.h"
#include "src/core/progress/patience.h"
#include "src/core/progress/progress_scopes.h"

namespace seto {
namespace {

// After the last task whose caller waits next, the background thread polls at most this many times.
constexpr int kWatchfulLooks = 100;

}  // namespace

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

void Progress::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  sleeper_.wake();
  if (worker_.joinable()) worker_.join();
}

// The background thread works only while there is work and no thread waits. The token is released without a barrier (small calls
// would pay for it), so a release and a submission may miss each other: while there is work, this thread polls now and then.
void Progress::work() {
  std::unique_lock lock(mutex_);
  bool rested = false;  // nothing has woken it for a while
  const auto wanted = [&] {
    return stopping_ ||
           (pending_.load() > 0 && (rested || has_work()) && waiters_.load() == 0 && !token_.load(std::memory_order_relaxed));
  };
  std::uint64_t awaited = 0;
  for (int looks = kWatchfulLooks;;) {
    for (rested = false; !wanted();) {
      if (std::exchange(awaited, awaited_) != awaited_)
        looks = 0;
      else if (looks < kWatchfulLooks)
        ++looks;
      watchful_ = pending_.load() > 0 || looks < kWatchfulLooks;
      rested = watchful_ && changed_.wait_for(lock, kStandByTime) == std::cv_status::timeout;
      if (!watchful_) changed_.wait(lock);
    }
    if (stopping_) return;
    watchful_ = false;
    lock.unlock();
    if (try_take()) {
      const Token held(*this);
      working_.store(true, std::memory_order_relaxed);
      work_until_wanted();
      working_.store(false, std::memory_order_relaxed);
    }
    lock.lock();
  }
}

bool Progress::background_goes_on() const { return waiters_.load() == 0 && !stopping_; }

// With the token held: works until no work is left, a thread waits, or the domain ends.
void Progress::work_until_wanted() {
  Patience patience(spins_);
  while (pending_.load(std::memory_order_relaxed) > 0 && background_goes_on()) {
    adopt();
    if (pump_too(round())) {
      if (patience.moved()) inspect_all();
      continue;
    }
    if (!patience.lasts(waits_far()) || inspect_all() || !patience.tired()) continue;
    look_and_sleep(
        kSleepMs, [this] { return round(); }, [this] { return background_goes_on(); });
  }
}

}  // namespace seto
