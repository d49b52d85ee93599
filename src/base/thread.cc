#include "src/base/thread.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

namespace seto {

Result<std::thread> start_thread(const char* name, std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  int error = 0;
  try {
    thread = std::thread(std::move(body));
  } catch (const std::system_error& thrown) {
    error = thrown.code().value();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    return failure(Code::unavailable, "cannot start thread %s: %s; raise ulimit -u, or run fewer processes", name,
                   std::generic_category().message(error).c_str());
  }
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

namespace {

// The numbers that no thread has taken yet, and the first failure.
class Work final {
 public:
  Work(std::size_t count, const SideWork& work) : count_(count), work_(work) {}

  void do_some() {
    for (std::size_t number = 0; next(number);) {
      Status done = work_(number, hopeless_);
      if (done.ok()) continue;
      const std::lock_guard lock(mutex_);
      if (first_failure_.ok()) first_failure_ = std::move(done);
      hopeless_.store(true, std::memory_order_release);
    }
  }
  [[nodiscard]] const Status& outcome() const { return first_failure_; }

 private:
  bool next(std::size_t& number) {
    const std::lock_guard lock(mutex_);
    number = next_;
    return first_failure_.ok() && next_++ < count_;
  }

  const std::size_t count_;
  const SideWork& work_;
  std::atomic<bool> hopeless_ = false;
  std::mutex mutex_;
  std::size_t next_ = 0;
  Status first_failure_;
};

}  // namespace

Status side_by_side(std::size_t count, std::size_t most, const SideWork& work) {
  Work all(count, work);
  std::vector<std::thread> helpers;
  while (helpers.size() + 1 < std::min(count, most)) {
    Result<std::thread> helper = start_thread("seto-helper", [&all] { all.do_some(); });
    if (!helper.ok()) break;
    helpers.push_back(std::move(helper).value());
  }
  all.do_some();
  for (std::thread& helper : helpers) helper.join();
  return all.outcome();
}

}  // namespace seto
