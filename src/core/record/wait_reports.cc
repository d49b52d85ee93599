#include "src/core/record/wait_reports.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace seto {

void Waits::tell(Recorder::Ticket ticket, Question question, WaitOfCall wait) {
  if (ticket == 0) return;
  {
    const std::lock_guard lock(mutex_);
    answers_[ticket] = {question, std::move(wait)};
    if (answers_.size() > kMostAnswers) make_room_beside(ticket);
  }
  changed_.notify_all();
}

void Waits::forget(Recorder::Ticket ticket) {
  const std::lock_guard lock(mutex_);
  answers_.erase(ticket);
}

// The call that hangs longest is the one that is asked about: it answers every question, so what goes is the answer to the oldest
// one, and of those the youngest call's.
void Waits::make_room_beside(Recorder::Ticket ticket) {
  auto least = answers_.end();
  for (auto one = answers_.begin(); one != answers_.end(); ++one)
    if (one->first != ticket && (least == answers_.end() || one->second.question <= least->second.question)) least = one;
  answers_.erase(least);
}

void Waits::await(const std::vector<Recorder::Ticket>& tickets, Question question, int milliseconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] {
    return std::all_of(tickets.begin(), tickets.end(), [&](Recorder::Ticket ticket) {
      const auto found = answers_.find(ticket);
      return found != answers_.end() && found->second.question >= question;
    });
  });
}

bool Waits::find(Recorder::Ticket ticket, WaitOfCall& wait) const {
  const std::lock_guard lock(mutex_);
  const auto found = answers_.find(ticket);
  if (found == answers_.end()) return false;
  wait = found->second.wait;
  return true;
}

}  // namespace seto
