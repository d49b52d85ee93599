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

// What a progress domain drives and sleeps on, as a test scripts it.
namespace seto::testing {

inline constexpr std::uint64_t kPatienceMs = 30'000;  // busy cores, under a race detector

// Polls; false: it never came true.
template <class Condition>
bool eventually(Condition condition) {
  const Deadline until = Deadline::after_ms(kPatienceMs);
  while (!condition()) {
    if (until.passed()) return false;
    sched_yield();
  }
  return true;
}

// What happened, in order, a letter each: a advance, i inspect, A arm, S sleep, D disarm, W wake.
class Events final {
 public:
  void note(char letter) {
    const std::lock_guard lock(mutex_);
    text_ += letter;
  }
  [[nodiscard]] std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

// Sleeps until it is woken and never for less, whatever time it is given: a bell that nobody rings shows as a failure.
class ScriptedSleeper final : public Sleeper {
 public:
  explicit ScriptedSleeper(Events* events = nullptr) : events_(events) {}

  std::function<void()> instead_of_sleep;

  void arm() override {
    note('A');
    EXPECT_FALSE(armed_.exchange(true)) << "armed twice";
  }
  void disarm() override {
    note('D');
    EXPECT_TRUE(armed_.exchange(false)) << "disarmed twice";
  }
  void await_bell(int milliseconds) override {
    note('S');
    EXPECT_TRUE(armed_.load()) << "sleeps where nobody would ring";
    EXPECT_GT(milliseconds, 0);
    sleeps_.fetch_add(1);
    if (instead_of_sleep) return instead_of_sleep();
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(bell_.wait_for(lock, std::chrono::milliseconds(kPatienceMs), [this] { return rung_; })) << "nobody rang";
    rung_ = false;
  }
  void wake() override {
    note('W');
    {
      const std::lock_guard lock(mutex_);
      rung_ = true;
    }
    bell_.notify_all();
  }

  [[nodiscard]] std::uint64_t sleeps() const { return sleeps_.load(); }
  [[nodiscard]] bool armed() const { return armed_.load(); }

 private:
  void note(char letter) {
    if (events_ != nullptr) events_->note(letter);
  }

  Events* events_;
  std::atomic<bool> armed_{false};
  std::atomic<std::uint64_t> sleeps_{0};
  std::mutex mutex_;
  std::condition_variable bell_;
  bool rung_ = false;
};

// Of one progress domain: that nothing of it is ever driven by two threads at once.
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
  };
  explicit ScriptedTask(Script script) : script_(std::move(script)) {}

  Step advance() override {
    note('a');
    advances_.fetch_add(1);
    enter();
    const Step step = script_.advance();
    leave();
    if (step == Step::ended) end({});
    return step;
  }
  bool inspect() override {
    note('i');
    inspections_.fetch_add(1);
    enter();
    const bool over = script_.inspect();
    leave();
    if (over) end(failure(Code::aborted, "inspected"));
    return over;
  }

  [[nodiscard]] std::uint64_t advances() const { return advances_.load(); }
  [[nodiscard]] std::uint64_t inspections() const { return inspections_.load(); }

 private:
  void note(char letter) {
    if (script_.events != nullptr) script_.events->note(letter);
  }
  void enter() {
    EXPECT_FALSE(ended()) << "driven after its end";
    if (script_.one != nullptr) script_.one->enter();
  }
  void leave() {
    if (script_.one != nullptr) script_.one->leave();
  }

  Script script_;
  std::atomic<std::uint64_t> advances_{0};
  std::atomic<std::uint64_t> inspections_{0};
};

}  // namespace seto::testing
