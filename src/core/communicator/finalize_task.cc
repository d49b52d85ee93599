#include "src/core/communicator/finalize_task.h"

namespace seto {

bool FinalizeTask::all_completed() {
  while (next_ < communicator_.ranks() && communicator_.members().completed_by(next_) >= communicator_.order().issued()) ++next_;
  return next_ == communicator_.ranks();
}

Task::Step FinalizeTask::advance() {
  if (!all_completed()) return Step::blocked;
  end({});
  return Step::ended;
}

bool FinalizeTask::inspect() {
  Status reason;
  if (communicator_.failed()) {
    reason = communicator_.first_failure();
  } else {
    const Members& members = communicator_.members();
    const Rank asked = next_;
    const auto issued = static_cast<unsigned long long>(communicator_.order().issued());
    const bool dead = members.is_dead(asked);
    const bool left = asked != members.rank() && members.has_left(asked);
    // That rank completed the operations before it left. The next rank is checked next time.
    if (all_completed() || next_ != asked) return false;
    if (dead || left) {
      reason = members.has_explained(next_) ? members.loss_of(next_)
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
