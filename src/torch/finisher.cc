#include "src/torch/finisher.h"

#include <utility>

namespace seto::torch_backend {

Finisher& Finisher::of_process() {
  static auto* const finisher = new Finisher;  // outlives all static objects
  return *finisher;
}

void Finisher::take(c10::intrusive_ptr<Work> work) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return (void)work.release();
  works_.push_back(std::move(work));
  if (!std::exchange(started_, true)) std::thread([this] { run(); }).detach();
  changed_.notify_all();
}

void Finisher::stop(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  changed_.wait_for(lock, patience, [&] { return !busy_; });
}

void Finisher::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !works_.empty() && !stopped_; });
    c10::intrusive_ptr<Work> work = std::move(works_.front());
    works_.pop_front();
    busy_ = true;
    lock.unlock();
    work->settle();
    work.reset();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace seto::torch_backend
