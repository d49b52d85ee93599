#pragma once

#include <cstdint>
#include <utility>

#include "src/base/status.h"
#include "src/core/record/observability.h"

namespace seto {

// A task's entry in the flight recorder. Reading the time stamp costs as much as the rest of the entry, so only the issue always
// has its own time; a call that begins and ends without a wait takes no other.
class RecorderEntry final {
 public:
  enum class TimeStamp : std::uint8_t { now, later };
  void issue(Observability& observability, const RecordedCall& call, std::uint64_t operation, const CallerMark& mark,
             TimeStamp stamp = TimeStamp::now) {
    observability_ = &observability;
    unstamped_ = stamp == TimeStamp::later;
    ticket_ = observability.recorder().issue(call, operation, mark, !unstamped_);
  }
  // The time of issue, if issue() left it out. A call that ends has it in any case.
  [[nodiscard]] bool unstamped() const { return unstamped_; }
  void stamp() {
    observability_->recorder().stamp(ticket_);
    unstamped_ = false;
  }
  // `later`: time has passed since the issue, so the clock is read.
  void begin(bool later) { observability_->recorder().begin(ticket_, later ? ticks() : 0); }
  // True if the task has to report what it waits for: on request, or when it ends (before its buffers are released).
  [[nodiscard]] bool wanted(bool ending) const { return ticket_ != 0 && (ending || observability_->waits().wanted(answered_)); }
  void tell(WaitReport wait) {
    answered_ = observability_->waits().question();
    told_ = true;
    observability_->waits().tell(ticket_, answered_, std::move(wait));
  }
  // `failed`: the communicator failed with this call.
  void end(const Status& status, bool failed, bool later) {
    if (unstamped_) [[unlikely]]
      stamp();
    const RecordedState how = status.ok() ? RecordedState::ended : failed ? RecordedState::failed : RecordedState::rejected;
    observability_->recorder().end(ticket_, how, later ? ticks() : 0);
    if (told_ && how != RecordedState::failed) observability_->waits().forget(ticket_);
  }

 private:
  Observability* observability_ = nullptr;
  FlightRecorder::Ticket ticket_ = 0;
  WaitReports::Question answered_ = 0;
  bool told_ = false;
  bool unstamped_ = false;
};

}  // namespace seto
