#include "src/core/communicator/operation_order.h"

#include "src/core/call/call_summary.h"

namespace seto {

void OperationOrder::begin_rejected(Note note, const Status& reason) {
  note.verdict = static_cast<std::uint32_t>(reason.code());
  put_reason(note, reason.text());
  rejected_ = note.operation;
  begin(note);
}

// Two operations may be under way, and the later one may end first. Peers are told the number up to which all have ended.
void OperationOrder::complete(std::uint64_t operation) {
  std::uint64_t done = done_.load(std::memory_order_relaxed);
  if (operation != done + 1) {
    ended_early_[operation % ended_early_.size()] = operation;
    return;
  }
  ++done;
  while (ended_early_[(done + 1) % ended_early_.size()] == done + 1) ++done;
  members_.peer_group().complete(done);
  done_.store(done, std::memory_order_release);
}

bool OperationOrder::rejection_was_read(std::uint64_t operation) {
  if (rejected_ == 0 || operation < rejected_ + kNotesKept) return true;
  if (!members_.all_have_completed(rejected_)) return false;
  rejected_ = 0;
  return true;
}

}  // namespace seto
