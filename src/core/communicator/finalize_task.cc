#include "src/core/communicator/finalize_task.h"

namespace seto {

bool DrainTask::all_done() {
  while (next_ < communicator_.ranks_ &&
         communicator_.circle_->completed_by(static_cast<std::uint32_t>(next_)) >= communicator_.issued_)
    ++next_;
  return next_ == communicator_.ranks_;
}

Task::Step DrainTask::advance() {
  if (!all_done()) return Step::blocked;
  end({});
  return Step::ended;
}

bool DrainTask::inspect() {
  Status reason;
  if (communicator_.failed()) {
    reason = communicator_.first_failure();
  } else {
    const Rank asked = next_;
    const auto member = static_cast<std::uint32_t>(asked);
    const auto issued = static_cast<unsigned long long>(communicator_.issued_);
    const bool dead = next_ != communicator_.rank_ && communicator_.connections_[member]->dead();
    const bool left = next_ != communicator_.rank_ && communicator_.circle_->fate_of(member).reason != 0;
    if (all_done() || next_ != asked) return false;  // it ended what it had to before it left; the next one is asked next time
    if (dead || left) {
      reason = communicator_.said_why(next_) ? communicator_.why_gone(next_)
                                             : failure(Code::remote_error, "finalize: rank %d %s before it ended operation %llu",
                                                       next_, dead ? "died" : "left the communicator", issued);
    } else if (deadline_.passed()) {
      reason = failure(Code::timeout, "finalize: rank %d did not end operation %llu before the deadline", next_, issued);
    }
    if (!reason.ok()) communicator_.fail(reason, next_);
  }
  if (reason.ok()) return false;
  end(std::move(reason));
  return true;
}

}  // namespace seto
