#include "src/core/device_memory/launch_watcher.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "src/base/thread.h"
#include "src/core/device_memory/launch_gate.h"

namespace seto {
namespace {

using std::chrono::microseconds;

constexpr microseconds kWhileRunning(500);
constexpr microseconds kWithGraphs(20'000);
constexpr microseconds kForRetired(20'000), kLongestForRetired(1'000'000);
constexpr microseconds kToFree(1'000'000);  // at the end of a communicator

}  // namespace

// The driver may end with the process, so no thread of the library may call it then.
struct StopLaunchWatcher {
  ~StopLaunchWatcher() { LaunchWatcher::of_process().stop(); }
  static void at_exit() { static const StopLaunchWatcher only; }
};

RetiredDevice::~RetiredDevice() {
  if (workspaces == nullptr) return;
  const std::shared_ptr<GpuContext> gpu = workspaces->gpu();
  const ContextScope scope(*gpu);
  if (!scope.status().ok()) return;
  if (launches != nullptr && launches->has_unwatched()) static_cast<void>(gpu->driver().ctx_synchronize.code());
  multicast.reset();
  transfers.reset();
  windows.reset();
  placed.reset();
  shapes.reset();
  launches.reset();
  workspaces.reset();
  staging.reset();
  slots.reset();
}

LaunchWatcher& LaunchWatcher::of_process() {
  static auto* const only = new LaunchWatcher;  // never destroyed: communicators may outlive static objects
  return *only;
}

Status LaunchWatcher::start() {
  StopLaunchWatcher::at_exit();
  {
    const std::lock_guard lock(wake_mutex_);
    if (stops_) return {};
  }
  if (!freeing_thread_.joinable()) {
    SETO_ASSIGN(freeing_thread_, start_thread("seto-gpu-free", [this] { run_freeing(); }));
  }
  if (!thread_.joinable()) {
    SETO_ASSIGN(thread_, start_thread("seto-gpu", [this] { run(); }));
  }
  return {};
}

Status LaunchWatcher::add(Watched& one) {
  const std::lock_guard lock(mutex_);
  SETO_TRY(start());
  watched_.push_back(&one);
  return {};
}

void LaunchWatcher::remove(Watched& one) {
  const std::lock_guard lock(mutex_);
  std::erase(watched_, &one);
}

bool LaunchWatcher::wake() {
  const std::lock_guard lock(wake_mutex_);
  if (!std::exchange(is_woken_, true)) woken_.notify_one();
  return !stops_;
}

// Without threads the memory stays allocated.
void LaunchWatcher::retire(std::unique_ptr<RetiredDevice> device) {
  Watched::Activity activity = Watched::Activity::running;
  {
    const std::lock_guard lock(mutex_);
    const bool has_threads = start().ok();
    {
      const std::lock_guard retired_lock(retired_mutex_);
      retired_.push_back(std::move(device));
    }
    if (has_threads) activity = look();
  }
  wake();
  if (activity != Watched::Activity::none) return;
  std::unique_lock lock(retired_mutex_);
  freed_.wait_for(lock, kToFree, [this, look = calm_looks_] { return freed_after_ >= look || freeing_stops_; });
}

std::size_t LaunchWatcher::retired() {
  const std::lock_guard lock(retired_mutex_);
  return retired_.size() + being_freed_;
}

void LaunchWatcher::stop() {
  {
    const std::lock_guard lock(wake_mutex_);
    stops_ = true;
    woken_.notify_one();
  }
  {
    const std::lock_guard lock(retired_mutex_);
    freeing_stops_ = true;
    may_free_.notify_one();
    freed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  if (freeing_thread_.joinable()) freeing_thread_.join();
}

bool LaunchWatcher::stop_retired() {
  const std::lock_guard lock(retired_mutex_);
  bool any = false;
  for (const std::unique_ptr<RetiredDevice>& one : retired_) {
    if (one->launches == nullptr || !one->launches->is_stopping()) continue;
    one->launches->stop();
    any = true;
  }
  return any;
}

Watched::Activity LaunchWatcher::look() noexcept {
  try {
    return look_at_all();
  } catch (const std::bad_alloc&) {
    return Watched::Activity::running;
  }
}

Watched::Activity LaunchWatcher::look_at_all() {
  const std::uint64_t came = LaunchGate::of_process().came();
  Watched::Activity activity = stop_retired() ? Watched::Activity::running : Watched::Activity::none;
  for (Watched* one : watched_) activity = std::max(activity, one->look());
  if (activity != Watched::Activity::none)
    return activity;  // a graph may run at any time, and freeing would wait for its kernels
  MemoryImporter::of_process().unmap_closed(came);
  const std::lock_guard lock(retired_mutex_);
  if (retired_.empty()) return activity;
  ++calm_looks_;
  calm_at_ = came;
  may_free_.notify_one();
  return activity;
}

// Each is asked once after a calm look. Once a launch came, the rest stays until the watcher, which it woke, finds no kernel
// again.
void LaunchWatcher::run_freeing() {
  std::unique_lock lock(retired_mutex_);
  while (true) {
    may_free_.wait(lock, [this] { return freeing_stops_ || calm_looks_ > freed_after_; });
    const std::uint64_t look = calm_looks_, came = calm_at_;
    for (std::size_t left = retired_.size(); left > 0 && !freeing_stops_; --left) {
      std::unique_ptr<RetiredDevice> one = std::move(retired_.front());
      retired_.pop_front();
      if (one->launches == nullptr || !one->launches->is_stopping()) {
        ++being_freed_;
        lock.unlock();
        if (const LaunchGate::Closed gate(came); gate.holds()) {
          one->workspaces->leave();
          if (one->patience.passed()) one->workspaces->give_up_other_processes();
          if (one->workspaces->all_left()) one.reset();
        }
        lock.lock();
        --being_freed_;
      }
      if (one != nullptr) retired_.push_back(std::move(one));
    }
    if (freeing_stops_) return;
    freed_after_ = look;
    freed_.notify_all();
  }
}

void LaunchWatcher::run() {
  microseconds for_retired = kForRetired;
  for (;;) {
    Watched::Activity activity = Watched::Activity::none;
    {
      const std::lock_guard lock(mutex_);
      activity = look();
    }
    const bool has_retired = retired() > 0;
    std::unique_lock lock(wake_mutex_);
    if (stops_) return;
    if (is_woken_) for_retired = kForRetired;
    if (activity == Watched::Activity::running) {
      is_woken_ = false;
      woken_.wait_for(lock, kWhileRunning, [this] { return stops_; });
    } else if (activity == Watched::Activity::graphs) {
      woken_.wait_for(lock, kWithGraphs, [this] { return stops_ || is_woken_; });
    } else if (has_retired) {
      woken_.wait_for(lock, for_retired, [this] { return stops_ || is_woken_; });
      for_retired = std::min(2 * for_retired, kLongestForRetired);
    } else {
      woken_.wait(lock, [this] { return stops_ || is_woken_; });
    }
    if (activity != Watched::Activity::running) is_woken_ = false;
  }
}

}  // namespace seto
