#include "src/base/work_threads.h"

#include <algorithm>
#include <utility>

#include "src/base/thread.h"

namespace seto {

Status WorkThreads::add(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (stopping_.load(std::memory_order_relaxed)) return {};
  waiting_.push_back(std::move(work));
  // A thread that has ended holds no lock and runs no work, so this does not wait for it.
  for (const std::thread::id id : std::exchange(ended_, {})) {
    const auto thread = std::find_if(threads_.begin(), threads_.end(), [id](const auto& one) { return one.get_id() == id; });
    thread->join();
    threads_.erase(thread);
  }
  if (active_ >= most_) return {};
  Result<std::thread> thread = start_thread(name_, [this] { run(); });
  if (!thread.ok()) {
    if (active_ > 0) return {};
    waiting_.pop_back();
    return thread.status();
  }
  ++active_;
  threads_.push_back(std::move(thread).value());
  return {};
}

void WorkThreads::run() {
  std::unique_lock lock(mutex_);
  while (!waiting_.empty() && !stopping_.load(std::memory_order_relaxed)) {
    std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    work();
    work = {};  // what it holds may end now, which may wait for other threads
    lock.lock();
  }
  --active_;
  ended_.push_back(std::this_thread::get_id());
}

std::size_t WorkThreads::active() const {
  const std::lock_guard lock(mutex_);
  return active_;
}

void WorkThreads::stop() {
  if (generation_ != fork_generation()) {
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.detach();
    return;
  }
  std::vector<std::thread> threads;
  std::deque<std::function<void()>> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopping_.store(true, std::memory_order_release);
    dropped.swap(waiting_);
    threads.swap(threads_);
    ended_.clear();
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace seto
