#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "src/base/clock.h"
#include "src/core/progress/progress.h"

// Scripted tasks and sleepers for tests of a progress domain.
namespace seto::testing {

inline constexpr std::uint64_t kPatienceMs = 30'000;  // long enough for busy cores under a race detector

// Polls until the condition is true; returns false if it is not true in time.
template <class Condition>
bool eventually(Condition condition) {
  const Deadline until = Deadline::after_ms(kPatienceMs);
  while (!condition()) {
    if (until.passed()) return false;
    sched_yield();
  }
  return true;
}

// The calls in order, one character each: a advance, i inspect, A arm, S sleep, D disarm, W wake.
class Events final {
 public:
  void note(char header) {
    const std::lock_guard lock(mutex_);
    text_ += header;
  }
  [[nodiscard]] std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

// Sleeps until it is woken, whatever timeout it is given: a missing wakeup shows as a failure.
class ScriptedSleeper final : public Sleeper {
 public:
  explicit ScriptedSleeper(Events* events = nullptr) : events_(events) {}

  std::function<void()> instead_of_sleep;
  std::function<Moved()> instead_of_pump;
  std::atomic<bool> pumping_may_wait{false};

  void arm() override {
    note('A');
    EXPECT_FALSE(armed_.exchange(true)) << "armed twice";
  }
  void disarm() override {
    note('D');
    EXPECT_TRUE(armed_.exchange(false)) << "disarmed twice";
  }
  [[nodiscard]] bool pumps_now() const override { return !pumping_may_wait; }
  Moved pump() override { return instead_of_pump ? instead_of_pump() : Moved(); }
  void await_wakeup(int milliseconds) override {
    note('S');
    EXPECT_TRUE(armed_.load()) << "sleeps without arming";
    EXPECT_GT(milliseconds, 0);
    sleeps_.fetch_add(1);
    if (instead_of_sleep) return instead_of_sleep();
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(wakeup_.wait_for(lock, std::chrono::milliseconds(kPatienceMs), [this] { return rung_; })) << "no wakeup arrived";
    rung_ = false;
  }
  void wake() override {
    note('W');
    {
      const std::lock_guard lock(mutex_);
      rung_ = true;
    }
    wakeup_.notify_all();
  }

  [[nodiscard]] std::uint64_t sleeps() const { return sleeps_.load(); }
  [[nodiscard]] bool armed() const { return armed_.load(); }

 private:
  void note(char header) {
    if (events_ != nullptr) events_->note(header);
  }

  Events* events_;
  std::atomic<bool> armed_{false};
  std::atomic<std::uint64_t> sleeps_{0};
  std::mutex mutex_;
  std::condition_variable wakeup_;
  bool rung_ = false;
};

// Checks that no two threads drive one progress domain at once.
class OneAtATime final {
 public:
  void enter() { EXPECT_EQ(inside_.fetch_add(1), 0) << "two threads drive"; }
  void leave() { inside_.fetch_sub(1); }

 private:
  std::atomic<int> inside_{0};
};

class ScriptedTask final : public Task {
 public:
  struct Script {
    std::function<Step()> advance;
    std::function<bool()> inspect = [] { return false; };
    OneAtATime* one = nullptr;
    Events* events = nullptr;
    bool only_pumps = false;
  };
  explicit ScriptedTask(Script script) : script_(std::move(script)) {}

  Step advance() override {
    note('a');
    advances_.fetch_add(1);
    const Step step = inside(script_.advance);
    if (step == Step::ended) end({});
    return step;
  }
  bool inspect() override {
    note('i');
    inspections_.fetch_add(1);
    const bool over = inside(script_.inspect);
    if (over) end(failure(Code::aborted, "inspected"));
    return over;
  }

  void delayed() override { ++delays_; }
  [[nodiscard]] bool only_pumps() const override { return script_.only_pumps; }

  [[nodiscard]] std::uint64_t delays() const { return delays_; }
  [[nodiscard]] std::uint64_t advances() const { return advances_.load(); }
  [[nodiscard]] std::uint64_t inspections() const { return inspections_.load(); }

 private:
  void note(char header) {
    if (script_.events != nullptr) script_.events->note(header);
  }
  template <class Answer>
  auto inside(const Answer& answer) -> decltype(answer()) {
    EXPECT_FALSE(ended()) << "driven after its end";
    struct Left {
      OneAtATime* one;
      ~Left() {
        if (one != nullptr) one->leave();
      }
    };
    if (script_.one != nullptr) script_.one->enter();
    const Left left{script_.one};
    return answer();
  }

  Script script_;
  std::uint64_t delays_ = 0;
  std::atomic<std::uint64_t> advances_{0};
  std::atomic<std::uint64_t> inspections_{0};
};

}  // namespace seto::testing
