#include <mutex>

#include "src/control/control_thread.h"

namespace seto {
namespace {

// The control thread of the process. Mutable state of the process: one thread serves all contexts. Stopped at exit and never
// destroyed, so that destructors which run later find it answering.
struct Holder {
  std::mutex mutex;
  ControlThread* present = nullptr;
  std::atomic<ControlThread*> published{nullptr};  // a forked child must not touch the mutex
};

Holder& holder() {
  static Holder* const only = new Holder;
  return *only;
}

struct StopAtExit {
  ~StopAtExit() {
    if (ControlThread* control = holder().published.load(std::memory_order_acquire)) control->stop();
  }
};

}  // namespace

Result<ControlThread*> ControlThread::of_process() {
  if (process_was_forked()) return used_in_forked_child();
  Holder& one = holder();
  if (ControlThread* control = one.published.load(std::memory_order_acquire)) return control;
  const std::lock_guard lock(one.mutex);
  if (one.present == nullptr) {
    SETO_ASSIGN(auto control, create());
    one.present = control.release();
    refuse_forked_children();
    static const StopAtExit stop_at_exit;
    one.published.store(one.present, std::memory_order_release);
  }
  return one.present;
}

}  // namespace seto
