// The steps of a task as the token holder makes them: an exception ends the task with a failure, and leaves the token in order.

#include <new>

#include "src/core/progress/progress.h"

namespace seto {

Task::Step Progress::advance(Task& task) noexcept {
  try {
    return task.advance();
  } catch (...) {
    return give_up(task) ? Task::Step::ended : Task::Step::blocked;
  }
}

bool Progress::inspect(Task& task) noexcept {
  try {
    return task.inspect();
  } catch (...) {
    return give_up(task);
  }
}

// Called by a handler. The maker of the task waits for its end, so the exception must not leave this function. Returns true if
// the task has ended and may be destroyed.
bool Progress::give_up(Task& task) noexcept {
  const Status* reason = &threw_;
  try {
    throw;
  } catch (const std::bad_alloc&) {
    reason = &out_of_memory_;
  } catch (...) {
  }
  try {
    return task.give_up(*reason);
  } catch (...) {
    return false;
  }
}

// A connection that drops bytes because memory is missing fails when the next bytes arrive.
Moved Progress::pump() noexcept {
  try {
    return sleeper_.pump();
  } catch (...) {
    return {};
  }
}

}  // namespace seto
