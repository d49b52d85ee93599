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

// What a call under way waits for, in words of a user.
struct WaitOfCall {
  Rank peer = -1;    // -1: for none
  std::string text;  // "waits for slice 3 of 4 from rank 2"
  std::string step;  // "step 14 of 30"; empty: it waits at none

  [[nodiscard]] std::string with_step() const { return step.empty() ? text : text + " (" + step + ")"; }
};

// Only who drives a call can say what it waits for, and saying it costs as much as a small call: so it is asked for. Tasks see
// the question when they look around, and answer once. Any thread.
class Waits final {
 public:
  // The question as a task has answered it last; 0: never.
  using Question = std::uint32_t;

  [[nodiscard]] bool wanted(Question answered) const { return asked_.load(std::memory_order_relaxed) != answered; }
  [[nodiscard]] Question question() const { return asked_.load(std::memory_order_relaxed); }
  void tell(Recorder::Ticket ticket, Question question, WaitOfCall wait);
  // It waits no more. A call that failed is not forgotten: what it waited for is asked afterwards.
  void forget(Recorder::Ticket ticket);

  Question ask() { return asked_.fetch_add(1, std::memory_order_relaxed) + 1; }
  // Until all of them have answered that question or a later one, at most so long. A rank that computes answers nothing.
  void await(const std::vector<Recorder::Ticket>& tickets, Question question, int milliseconds);
  // The last answer of a call; false: it has not said anything.
  [[nodiscard]] bool find(Recorder::Ticket ticket, WaitOfCall& wait) const;

 private:
  // Of calls that failed, or that are more than anybody asks at once.
  static constexpr std::size_t kMostAnswers = 64;

  struct Answer {
    Question question = 0;
    WaitOfCall wait;
  };

  void make_room_beside(Recorder::Ticket ticket);  // locked

  std::atomic<Question> asked_{0};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Recorder::Ticket, Answer> answers_;
};

}  // namespace seto
