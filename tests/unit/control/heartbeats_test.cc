#include "src/control/liveness/heartbeats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <atomic>
#include <csignal>
#include <mutex>
#include <new>
#include <string>

#include "tests/support/child_process.h"
#include "tests/support/eventually.h"
#include "tests/support/tries.h"

namespace seto {
namespace {

using testing::ChildProcess;
using testing::eventually;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr LivenessSettings kQuick{20, 300};

// With a timeout of some hundred milliseconds a living process may be declared dead, because the machine gave it no core for so
// long. So the tests with two processes try longer timeouts after that.
LivenessSettings quick(std::uint64_t timeout_ms) { return {20, timeout_ms}; }
constexpr std::initializer_list<std::uint64_t> kTimeoutsMs = {300, 1'200, 4'000};

void wait_ms(std::uint64_t ms) { poll(nullptr, 0, static_cast<int>(ms)); }

// A page of memory that a test shares with its children.
struct SharedCounter {
  std::atomic<std::uint64_t>& counter;
  SharedCounter()
      : counter(*new (mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                    std::atomic<std::uint64_t>(0)) {}
  ~SharedCounter() { munmap(&counter, 4096); }
  SharedCounter(const SharedCounter&) = delete;
  SharedCounter& operator=(const SharedCounter&) = delete;
};

struct Told {
  std::mutex mutex;
  std::string why;
  std::atomic<int> times{0};
  Heartbeats::OnSilence hear() {
    return [this](const std::string& text) {
      const std::lock_guard lock(mutex);
      why = text;
      ++times;
    };
  }
};

// A process whose control thread sends heartbeats until it is killed.
ChildProcess beating(std::atomic<std::uint64_t>& counter) {
  return ChildProcess([&] {
    const auto control = ControlThread::create().value();
    const auto hearts = Heartbeats::create(*control, kQuick).value();
    const auto registration = hearts->beat(counter);
    wait_ms(60'000);
    return true;
  });
}

TEST(Heartbeats, AFrozenProcessIsDetectedAndALivingOneIsNot) {
  const auto attempt = [](std::uint64_t timeout_ms) -> std::string {
    SharedCounter shared;
    ChildProcess child = beating(shared.counter);
    const auto control = ControlThread::create().value();
    const auto hearts = Heartbeats::create(*control, quick(timeout_ms)).value();
    Told told;
    const auto registration = hearts->watch(shared.counter, told.hear());
    EXPECT_TRUE(eventually([&] { return shared.counter.load() > timeout_ms / 8; }));  // twice the timeout or more
    if (told.times != 0) return "a living process counts as dead";
    const std::uint64_t start = monotonic_ns();
    kill(child.pid(), SIGSTOP);
    EXPECT_TRUE(eventually([&] { return told.times.load() == 1; }));
    std::printf("detected after %.1f ms\n", static_cast<double>(monotonic_ns() - start) * 1e-6);
    EXPECT_THAT(told.why, StartsWith("its process gave no sign of life for "));
    wait_ms(100);
    EXPECT_EQ(told.times, 1);
    return {};
  };
  EXPECT_EQ(testing::with_growing_time(attempt, kTimeoutsMs), "");
}

TEST(Heartbeats, AStoppedProcessBlamesNobody) {
  const auto attempt = [](std::uint64_t timeout_ms) -> std::string {
    SharedCounter beats;
    SharedCounter verdict;
    ChildProcess watcher([&] {
      const auto own = ControlThread::create().value();
      const auto hearts = Heartbeats::create(*own, quick(timeout_ms)).value();
      const auto registration = hearts->watch(beats.counter, [&](const std::string&) { ++verdict.counter; });
      wait_ms(60'000);
      return true;
    });
    const auto control = ControlThread::create().value();
    const auto hearts = Heartbeats::create(*control, kQuick).value();
    const auto registration = hearts->beat(beats.counter);
    for (int round = 0; round < 3; ++round) {
      wait_ms(80);
      kill(watcher.pid(), SIGSTOP);
      wait_ms(2 * timeout_ms);
      kill(watcher.pid(), SIGCONT);
      wait_ms(100);
    }
    return verdict.counter.load() == 0 ? "" : "the watcher blames a living process";
  };
  EXPECT_EQ(testing::with_growing_time(attempt, kTimeoutsMs), "");
}

TEST(Heartbeats, AnOrderlyEndAndAMissingStartAreNotSilence) {
  SharedCounter shared;
  const auto control = ControlThread::create().value();
  const auto hearts = Heartbeats::create(*control, kQuick).value();
  Told told;
  const auto registration = hearts->watch(shared.counter, told.hear());
  poll(nullptr, 0, 500);
  EXPECT_EQ(told.times, 0);
  {
    const auto beat = hearts->beat(shared.counter);
    ASSERT_TRUE(eventually([&] { return shared.counter.load() > 3; }));
  }
  EXPECT_EQ(shared.counter.load(), 0U);
  poll(nullptr, 0, 500);
  EXPECT_EQ(told.times, 0);
}

TEST(Heartbeats, CostNothingWhenOff) {
  SharedCounter shared;
  const auto control = ControlThread::create().value();
  const auto hearts = Heartbeats::create(*control, {0, 300}).value();
  Told told;
  const auto beat = hearts->beat(shared.counter);
  const auto watch = hearts->watch(shared.counter, told.hear());
  shared.counter = 1;
  poll(nullptr, 0, 450);
  EXPECT_EQ(shared.counter.load(), 1U);
  EXPECT_EQ(told.times, 0);
}

TEST(Heartbeats, ARemovedWatchIsNotCalledAndMayRemoveItself) {
  SharedCounter shared;
  const auto control = ControlThread::create().value();
  const auto hearts = Heartbeats::create(*control, {5, 20}).value();
  shared.counter = 1;
  for (int round = 0; round < 50; ++round) {
    auto told = std::make_unique<Told>();
    auto registration = hearts->watch(shared.counter, told->hear());
    poll(nullptr, 0, round % 7 * 5);
    registration.remove();
  }
  Heartbeats::Registration itself;
  std::mutex mutex;
  std::atomic<bool> done{false};
  {
    const std::lock_guard lock(mutex);
    itself = hearts->watch(shared.counter, [&](const std::string&) {
      const std::lock_guard held(mutex);
      itself.remove();
      done = true;
    });
  }
  EXPECT_TRUE(eventually([&] { return done.load(); }));
}

// Returns once the control thread has called a new handler.
void pass_through(ControlThread& control) {
  const Fd event(eventfd(1, EFD_CLOEXEC));
  std::atomic<bool> called{false};
  auto marker = control.add(event.get(), EPOLLIN | EPOLLONESHOT, [&](std::uint32_t) { called = true; });
  EXPECT_TRUE(marker.ok() && eventually([&] { return called.load(); }));
  marker->remove();
}

// The time that the control thread sees, from an injected clock.
std::uint64_t fake_now = 0;
std::uint64_t fake_clock() { return fake_now; }

TEST(RunningTime, TimeWhileStoppedDoesNotCount) {
  fake_now = 1'000'000;
  RunningTime time(1000, fake_clock);
  LastReceived silence(time);
  for (int tick = 0; tick < 10; ++tick) {
    fake_now += 1000;
    time.tick();
  }
  EXPECT_EQ(silence.age_ns(time), 10'000U);
  // After a stop of an hour, at most 1.5 periods of it count.
  fake_now += 3'600'000'000'000;
  time.tick();
  EXPECT_EQ(silence.age_ns(time), 11'500U);
  silence.update(time);
  EXPECT_EQ(silence.age_ns(time), 0U);
}

TEST(RunningTime, AHeartbeatBeforeALateTickIsNotInTheFuture) {
  fake_now = 1'000'000;
  RunningTime time(1000, fake_clock);
  LastReceived silence(time);
  fake_now += 1'000'000;
  silence.update(time);  // before the tick that detects it
  time.tick();
  EXPECT_EQ(silence.age_ns(time), 0U);
  for (int tick = 0; tick < 5; ++tick) {
    fake_now += 1000;
    time.tick();
  }
  EXPECT_EQ(silence.age_ns(time), 5'000U);
}

TEST(HeartbeatTimer, ALongIntervalIsShortenedToTheTimeout) {
  const auto control = ControlThread::create().value();
  const auto pulse = HeartbeatTimer::create(*control, {60'000, 300}, [] {}).value();
  EXPECT_EQ(pulse->period_ns(), 100'000'000U);
  EXPECT_FALSE(HeartbeatTimer::create(*control, {0, 300}, [] {}).value()->on());
}

TEST(HeartbeatTimer, SendsOnlyWhileItIsNeeded) {
  const auto control = ControlThread::create().value();
  std::atomic<int> beats{0};
  const auto pulse = HeartbeatTimer::create(*control, {5, 300}, [&] { ++beats; }).value();
  poll(nullptr, 0, 30);
  EXPECT_EQ(beats, 0);
  pulse->start();
  EXPECT_TRUE(eventually([&] { return beats.load() > 3; }));
  pulse->stop();
  pass_through(*control);  // a beat may have been under way
  pass_through(*control);  // or waited in the same list of events as the first call
  const int before = beats;
  poll(nullptr, 0, 40);
  EXPECT_EQ(beats, before);
}

}  // namespace
}  // namespace seto
