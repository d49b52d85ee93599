#include "src/core/device_memory/launch_gate.h"

#include <chrono>

#include "src/core/device_memory/launch_watcher.h"

namespace seto {

LaunchGate& LaunchGate::of_process() {
  static auto* const only = new LaunchGate;  // never destroyed, so that late launches find it
  return *only;
}

void LaunchGate::pass() {
  std::unique_lock lock(mutex_);
  ++came_;  // before the wait, so that the gate is not closed again at once
  opened_.wait_for(lock, std::chrono::milliseconds(kLongestMs), [this] { return closed_ == 0; });
}

LaunchGate::Closed::Closed(std::uint64_t came) {
  LaunchGate& gate = of_process();
  const std::lock_guard lock(gate.mutex_);
  holds_ = gate.came_ == came && gate.unwatched_ == 0;
  if (holds_) ++gate.closed_;
}

LaunchGate::Closed::~Closed() {
  if (!holds_) return;
  LaunchGate& gate = of_process();
  const std::lock_guard lock(gate.mutex_);
  if (--gate.closed_ == 0) gate.opened_.notify_all();
}

LaunchGate::Unwatched::Unwatched() {
  LaunchGate& gate = of_process();
  std::unique_lock lock(gate.mutex_);
  ++gate.unwatched_;
  gate.opened_.wait_for(lock, std::chrono::milliseconds(kLongestMs), [&] { return gate.closed_ == 0; });
}

LaunchGate::Unwatched::~Unwatched() {
  {
    LaunchGate& gate = of_process();
    const std::lock_guard lock(gate.mutex_);
    --gate.unwatched_;
  }
  LaunchWatcher::of_process().wake();  // what waited for the end of this work
}

}  // namespace seto
