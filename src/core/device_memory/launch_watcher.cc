#include "src/core/device_memory/launch_watcher.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "src/base/thread.h"

namespace seto {
namespace {

using std::chrono::microseconds;

constexpr microseconds kWhileRunning(500);
constexpr microseconds kWithGraphs(20'000);
constexpr microseconds kForRetired(20'000), kLongestForRetired(1'000'000);

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
  transfers.reset();
  windows.reset();
  placed.reset();
  shapes.reset();
  launches.reset();
  workspaces.reset();
  staging.reset();
}

LaunchWatcher& LaunchWatcher::of_process() {
  static auto* const only = new LaunchWatcher;  // never destroyed: communicators may outlive static objects
  return *only;
}

Status LaunchWatcher::add(Watched& one) {
  StopLaunchWatcher::at_exit();
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) {
    SETO_ASSIGN(thread_, start_thread("seto-gpu", [this] { run(); }));
  }
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

void LaunchWatcher::retire(std::unique_ptr<RetiredDevice> device) {
  {
    const std::lock_guard lock(mutex_);
    retired_.push_back(std::move(device));
    static_cast<void>(look());
  }
  wake();
}

std::size_t LaunchWatcher::retired() {
  const std::lock_guard lock(mutex_);
  return retired_.size();
}

void LaunchWatcher::stop() {
  {
    const std::lock_guard lock(wake_mutex_);
    stops_ = true;
    woken_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

Watched::Activity LaunchWatcher::look() {
  const std::uint64_t came = LaunchGate::of_process().came();
  Watched::Activity activity = Watched::Activity::none;
  for (Watched* one : watched_) activity = std::max(activity, one->look());
  if (activity != Watched::Activity::none)
    return activity;  // a graph may run at any time, and freeing would wait for its kernels
  MemoryImporter::of_process().unmap_closed(came);
  if (retired_.empty()) return activity;
  const LaunchGate::Closed gate(came);
  if (!gate.holds()) return activity;  // a launch that came since has woken the watcher, which looks again
  std::erase_if(retired_, [](const std::unique_ptr<RetiredDevice>& one) {
    one->workspaces->leave();
    return one->workspaces->all_left() || one->patience.passed();
  });
  return activity;
}

Watched::Activity LaunchWatcher::look_at_all() {
  const std::lock_guard lock(mutex_);
  return look();
}

void LaunchWatcher::run() {
  microseconds for_retired = kForRetired;
  for (;;) {
    const Watched::Activity activity = look_at_all();
    bool has_retired = false;
    {
      const std::lock_guard lock(mutex_);
      has_retired = !retired_.empty();
    }
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
