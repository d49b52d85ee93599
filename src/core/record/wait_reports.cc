#include "src/core/record/wait_reports.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace seto {

void WaitReports::tell(FlightRecorder::Ticket ticket, Question question, WaitReport wait) {
  if (ticket == 0) return;
  {
    const std::lock_guard lock(mutex_);
    answers_[ticket] = {question, std::move(wait)};
    if (answers_.size() > kMostAnswers) evict_for(ticket);
  }
  changed_.notify_all();
}

void WaitReports::forget(FlightRecorder::Ticket ticket) {
  const std::lock_guard lock(mutex_);
  answers_.erase(ticket);
}

// A dump asks most often about the call that hangs longest, and that call answers every question. So the report to evict is the
// one that answers the oldest question, and among several the one of the youngest call.
void WaitReports::evict_for(FlightRecorder::Ticket ticket) {
  auto least = answers_.end();
  for (auto one = answers_.begin(); one != answers_.end(); ++one)
    if (one->first != ticket && (least == answers_.end() || one->second.question <= least->second.question)) least = one;
  answers_.erase(least);
}

void WaitReports::await(const std::vector<FlightRecorder::Ticket>& tickets, Question question, int milliseconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] {
    return std::all_of(tickets.begin(), tickets.end(), [&](FlightRecorder::Ticket ticket) {
      const auto found = answers_.find(ticket);
      return found != answers_.end() && found->second.question >= question;
    });
  });
}

bool WaitReports::find(FlightRecorder::Ticket ticket, WaitReport& wait) const {
  const std::lock_guard lock(mutex_);
  const auto found = answers_.find(ticket);
  if (found == answers_.end()) return false;
  wait = found->second.wait;
  return true;
}

}  // namespace seto
