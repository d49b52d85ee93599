#include "src/torch/finisher.h"

#include <utility>

namespace seto::torch_backend {

Finisher& Finisher::of_process() {
  static auto* const finisher = new Finisher;  // outlives all static objects
  return *finisher;
}

void Finisher::take(c10::intrusive_ptr<Work> work) {
  const std::lock_guard lock(mutex_);
  works_.push_back(std::move(work));
  if (!std::exchange(started_, true)) std::thread([this] { run(); }).detach();
  changed_.notify_one();
}

void Finisher::run() {
  for (;;) {
    std::vector<c10::intrusive_ptr<Work>> works;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !works_.empty(); });
      works.swap(works_);
    }
    for (c10::intrusive_ptr<Work>& work : works) {
      work->settle();
      work.reset();
    }
  }
}

}  // namespace seto::torch_backend
