// A thread of Progress holds these for a while: its place among the waiters, the token, a sleeper that is armed. Only the sources
// of Progress include this file.
#pragma once

#include <chrono>

#include "src/core/progress/progress.h"

namespace seto {

// A sleeper that misses its wakeup notices after this time; see Context::await_wakeup.
inline constexpr int kSleepMs = 5;
// Waiters without the token check this often, in case a hand-over was missed.
inline constexpr std::chrono::milliseconds kStandByTime{1};

// RAII: registers this thread as a waiter.
class Progress::Attendance {
 public:
  explicit Attendance(Progress& progress) : progress_(progress) { progress_.attend(); }
  ~Attendance() { progress_.depart(); }
  Attendance(const Attendance&) = delete;
  Attendance& operator=(const Attendance&) = delete;

 private:
  Progress& progress_;
};

class Progress::Token {
 public:
  // Releases a token that was taken. `own_waits`: 1 for a waiter.
  explicit Token(Progress& progress, std::uint32_t own_waits = 0) : progress_(progress), own_waits_(own_waits) {}
  ~Token() { progress_.release(own_waits_); }
  Token(const Token&) = delete;
  Token& operator=(const Token&) = delete;

 private:
  Progress& progress_;
  const std::uint32_t own_waits_;
};

class Progress::Armed {
 public:
  explicit Armed(Sleeper& sleeper) : sleeper_(sleeper) { sleeper_.arm(); }
  ~Armed() { sleeper_.disarm(); }
  Armed(const Armed&) = delete;
  Armed& operator=(const Armed&) = delete;

 private:
  Sleeper& sleeper_;
};

template <class Look, class MaySleep>
void Progress::look_and_sleep(int milliseconds, const Look& look, const MaySleep& may_sleep) {
  const Armed armed(sleeper_);
  if (!look() && !pump() && arrived_.load(std::memory_order_relaxed) == 0 && may_sleep()) sleeper_.await_wakeup(milliseconds);
}

}  // namespace seto
