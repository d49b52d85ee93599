#include "src/torch/completion_threads.h"

#include <pthread.h>

#include <system_error>
#include <utility>

namespace seto::torch_backend {
namespace {

constexpr std::size_t kMostThreads = 64;

// The object outlives all static objects. A forked child has none of its threads and gets an object of its own.
CompletionThreads* current = nullptr;

}  // namespace

CompletionThreads& CompletionThreads::of_process() {
  static const bool once = [] {
    current = new CompletionThreads;
    return pthread_atfork(nullptr, nullptr, [] { current = new CompletionThreads; }) == 0;
  }();
  (void)once;
  return *current;
}

void CompletionThreads::start() {
  const std::lock_guard lock(mutex_);
  if (threads_ == 0) start_one();
}

void CompletionThreads::start_one() {
  std::thread([this] { run(); }).detach();
  ++threads_;
}

void CompletionThreads::take(c10::intrusive_ptr<Work> work) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return static_cast<void>(work.release());
  works_.push_back(std::move(work));
  if (busy_ == threads_ && threads_ < kMostThreads) try {
      start_one();
    } catch (const std::system_error&) {  // the work waits for one of the existing threads
    }
  changed_.notify_all();
}

void CompletionThreads::stop(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  changed_.wait_for(lock, patience, [&] { return busy_ == 0; });
}

void CompletionThreads::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !works_.empty() && !stopped_; });
    c10::intrusive_ptr<Work> work = std::move(works_.front());
    works_.pop_front();
    ++busy_;
    lock.unlock();
    work->settle();
    work.reset();
    lock.lock();
    --busy_;
    changed_.notify_all();
  }
}

}  // namespace seto::torch_backend
