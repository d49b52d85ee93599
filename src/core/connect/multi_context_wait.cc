#include "src/core/connect/multi_context_wait.h"

#include <algorithm>

namespace seto {
namespace {

// The deadline is read after this many moves even if the traffic never stops.
constexpr std::uint32_t kMovesBetweenLooks = 1024;

}  // namespace

// RAII: registers this thread as a waiter in every context.
class MultiContextWait::Attendance {
 public:
  explicit Attendance(const std::vector<std::shared_ptr<Context>>& contexts) : contexts_(contexts) {
    for (const auto& context : contexts_) context->progress().attend();
  }
  ~Attendance() {
    for (const auto& context : contexts_) context->progress().depart();
  }
  Attendance(const Attendance&) = delete;
  Attendance& operator=(const Attendance&) = delete;

 private:
  const std::vector<std::shared_ptr<Context>>& contexts_;
};

void MultiContextWait::add(const std::shared_ptr<Context>& context, Task& task) {
  if (std::find(contexts_.begin(), contexts_.end(), context) == contexts_.end()) contexts_.push_back(context);
  jobs_.push_back({context.get(), &task});
}

void MultiContextWait::run() {
  const Attendance here(contexts_);
  for (const Job& job : jobs_) job.context->progress().join(*job.task);
  (void)drive(Deadline::never());
}

bool MultiContextWait::wait(Deadline until) {
  const Attendance here(contexts_);
  return drive(until);
}

bool MultiContextWait::drive(Deadline until) {
  if (contexts_.size() > 1) return make_passes(until);
  return std::all_of(jobs_.begin(), jobs_.end(), [&](const Job& job) { return job.context->progress().wait(*job.task, until); });
}

bool MultiContextWait::make_passes(Deadline until) {
  std::size_t first = 0;
  std::uint32_t moves = 0;
  for (std::uint32_t idle = 0;;) {
    while (first < jobs_.size() && jobs_[first].task->ended()) ++first;
    if (first == jobs_.size()) return true;
    bool moved = false;
    for (const auto& context : contexts_) moved = context->progress().pass() || moved;
    if (moved) idle = 0;
    if ((!moved || ++moves % kMovesBetweenLooks == 0) && until.passed()) return false;
    // While none of them moves, the thread sleeps in one context after another.
    if (!moved) contexts_[idle % contexts_.size()]->progress().relax(idle);
    if (!moved) ++idle;
  }
}

}  // namespace seto
