#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "src/base/types.h"
#include "src/core/record/flight_recorder.h"

namespace seto {

// Describes for users what a call under way waits for.
struct WaitReport {
  Rank peer = -1;    // -1: the call waits for no peer
  std::string text;  // "waits for slice 3 of 4 from rank 2"
  std::string step;  // "step 14 of 30"; empty: the call waits at no step

  [[nodiscard]] std::string with_step() const { return step.empty() ? text : text + " (" + step + ")"; }
};

// Only the thread that drives a call knows what the call waits for, and a report costs as much as a small call. So reports are
// made on request: a task sees the request when it inspects its state, and answers once. Any thread.
class WaitReports final {
 public:
  // Number of a request; 0: the task has never answered.
  using Question = std::uint32_t;

  [[nodiscard]] bool wanted(Question answered) const { return asked_.load(std::memory_order_relaxed) != answered; }
  [[nodiscard]] Question question() const { return asked_.load(std::memory_order_relaxed); }
  void tell(FlightRecorder::Ticket ticket, Question question, WaitReport wait);
  // The call no longer waits. The report of a failed call is kept, because dumps are taken afterwards.
  void forget(FlightRecorder::Ticket ticket);

  Question ask() { return asked_.fetch_add(1, std::memory_order_relaxed) + 1; }
  // Waits until all these calls have answered that question or a later one, at most `milliseconds`. A rank that computes does not
  // answer.
  void await(const std::vector<FlightRecorder::Ticket>& tickets, Question question, int milliseconds);
  // The last report of a call; false: there is none.
  [[nodiscard]] bool find(FlightRecorder::Ticket ticket, WaitReport& wait) const;

 private:
  // Limits the reports kept: those of failed calls, or more calls than a dump asks about.
  static constexpr std::size_t kMostAnswers = 64;

  struct Answer {
    Question question = 0;
    WaitReport wait;
  };

  void evict_for(FlightRecorder::Ticket ticket);  // locked

  std::atomic<Question> asked_{0};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<FlightRecorder::Ticket, Answer> answers_;
};

}  // namespace seto
