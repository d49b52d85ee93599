#pragma once

#include <utility>

#include "src/base/status.h"
#include "src/core/seeing.h"

namespace seto {

// A task's entry in the flight recorder. A read of the time stamp costs as much as the rest of the entry, so only the issue has
// one of its own in any case: what begins and ends without anybody having waited for long has no other.
class TaskRecord final {
 public:
  void issue(Seeing& seeing, const RecordedCall& call, std::uint64_t operation, const CallerMark& mark) {
    seeing_ = &seeing;
    ticket_ = seeing.recorder().issue(call, operation, mark);
  }
  // `later`: some time after the issue.
  void begin(bool later) { seeing_->recorder().begin(ticket_, later ? ticks() : 0); }
  // In the words of the task, before its buffers go.
  [[nodiscard]] bool wanted(bool ending) const { return ticket_ != 0 && (ending || seeing_->waits().wanted(answered_)); }
  void tell(WaitOfCall wait) {
    answered_ = seeing_->waits().question();
    told_ = true;
    seeing_->waits().tell(ticket_, answered_, std::move(wait));
  }
  // `failed`: with the communicator.
  void end(const Status& status, bool failed, bool later) {
    const RecordedState how = status.ok() ? RecordedState::ended : failed ? RecordedState::failed : RecordedState::rejected;
    seeing_->recorder().end(ticket_, how, later ? ticks() : 0);
    if (told_ && how != RecordedState::failed) seeing_->waits().forget(ticket_);
  }

 private:
  Seeing* seeing_ = nullptr;
  Recorder::Ticket ticket_ = 0;
  Waits::Question answered_ = 0;
  bool told_ = false;
};

}  // namespace seto
