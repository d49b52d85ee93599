// Progress with several threads: which thread drives, which is woken, which sleeps. The sleeper never wakes by itself, so every
// wakeup that Progress owes must come.

#include <pthread.h>

#include <ctime>
#include <memory>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include "src/core/progress/progress.h"
#include "tests/support/seed.h"
#include "tests/support/tries.h"
#include "tests/unit/core/scripted.h"

namespace seto::testing {
namespace {

using Step = Task::Step;

constexpr std::uint32_t kSpins = 8;
constexpr std::uint64_t kSeed = 30;
#ifdef SETO_SANITIZED
constexpr int kRounds = 100;
#else
constexpr int kRounds = 1000;
#endif

class OnThreads : public ::testing::Test {
 protected:
  // A task that ends once the flag is set, on any thread.
  ScriptedTask gated(const std::atomic<bool>& open) {
    return ScriptedTask({[&open] { return open.load() ? Step::ended : Step::blocked; }, [] { return false; }, &one_, nullptr});
  }
  // A task that ends once the thread with that id drives it.
  ScriptedTask bound_to(const std::atomic<std::thread::id>& thread) {
    return ScriptedTask({[&thread] { return thread.load() == std::this_thread::get_id() ? Step::ended : Step::blocked; },
                         [] { return false; }, &one_, nullptr});
  }
  void open(std::atomic<bool>& gate) {
    gate.store(true);
    sleeper_.wake();
  }

  OneAtATime one_;
  ScriptedSleeper sleeper_;
  std::atomic<bool> never_{false};
};

// Blocking calls go on as if they were alone, although output waits for acknowledgements all the time.
TEST_F(OnThreads, ATaskThatOnlyPumpsAndMayWaitDelaysNoCall) {
  sleeper_.pumping_may_wait = true;
  Progress progress(sleeper_, kSpins);
  std::atomic<bool> gate{false};
  ScriptedTask pumping(
      {[&gate] { return gate.load() ? Step::ended : Step::blocked; }, [] { return false; }, &one_, nullptr, true});
  ASSERT_TRUE(progress.submit(pumping).ok());
  std::uint64_t delayed = 0;
  for (int round = 0; round < kRounds; ++round) {
    ScriptedTask call({[] { return Step::ended; }, [] { return false; }, &one_, nullptr});
    progress.run(call);
    ASSERT_TRUE(call.ended());
    delayed += call.delays();
  }
  EXPECT_LT(delayed, static_cast<std::uint64_t>(kRounds) / 2) << "the background thread takes it now and then";
  // No thread waits for it, and none calls any more.
  open(gate);
  EXPECT_TRUE(eventually([&] { return pumping.ended(); }));
}

// The background thread sleeps for good when it comes, because a thread waits; that one leaves.
TEST_F(OnThreads, ATaskThatOnlyPumpsAndMayWaitIsFoundAfterTheLastWaiterLeft) {
  sleeper_.pumping_may_wait = true;
  Progress progress(sleeper_, kSpins);
  ASSERT_TRUE(progress.prepare().ok());
  ScriptedTask pumping({[] { return Step::ended; }, [] { return false; }, &one_, nullptr, true});
  progress.attend();
  progress.join(pumping);
  progress.depart();
  EXPECT_TRUE(eventually([&] { return pumping.ended(); }));
}

// A call is driven alone; another thread waits for a task that comes meanwhile.
TEST_F(OnThreads, ATaskThatOnlyPumpsHidesNoOtherFromACallThatIsDrivenAlone) {
  sleeper_.pumping_may_wait = true;
  Progress progress(sleeper_, kSpins);
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> gate{false}, pumping_gate{false};
    std::atomic<int> begun{0};
    ScriptedTask pumping(
        {[&] { return pumping_gate.load() ? Step::ended : Step::blocked; }, [] { return false; }, &one_, nullptr, true});
    ScriptedTask later({[] { return Step::ended; }, [] { return false; }, &one_, nullptr});
    ScriptedTask call({[&] {
                         if (++begun == 2) progress.join(pumping);  // as a pump does that finds output
                         return gate.load() ? Step::ended : Step::blocked;
                       },
                       [] { return false; }, &one_, nullptr});
    std::thread caller([&] { progress.run(call); });
    EXPECT_TRUE(eventually([&] { return begun > 3; }));
    std::thread other([&] {
      progress.run(later);
      gate = true;
      sleeper_.wake();
    });
    other.join();
    caller.join();
    ASSERT_TRUE(progress.prepare().ok());
    open(pumping_gate);
    ASSERT_TRUE(eventually([&] { return pumping.ended(); }));
  }
}

TEST_F(OnThreads, TheBackgroundThreadDrivesTasksWithoutAWaiter) {
  Progress progress(sleeper_, kSpins);
  std::atomic<std::thread::id> driver{};
  std::atomic<bool> gate{false};
  ScriptedTask task({[&] {
                       driver.store(std::this_thread::get_id());
                       return gate.load() ? Step::ended : Step::blocked;
                     },
                     [] { return false; }, &one_, nullptr});
  ASSERT_TRUE(progress.submit(task).ok());
  ASSERT_TRUE(eventually([&] { return sleeper_.sleeps() > 0; })) << "it sleeps while nothing moves";
  open(gate);
  ASSERT_TRUE(eventually([&] { return task.ended(); }));
  EXPECT_NE(driver.load(), std::this_thread::get_id());
  EXPECT_TRUE(eventually([&] { return progress.idle(); }));
}

// A caller that announced a wait and does not wait delays its task a little, but the task still ends.
TEST_F(OnThreads, TheBackgroundThreadDrivesATaskWhoseWaiterNeverCame) {
  Progress progress(sleeper_, kSpins);
  ASSERT_TRUE(progress.prepare().ok());
  const std::atomic<bool> gate{true};
  for (int round = 0; round < kRounds / 10; ++round) {
    ScriptedTask kept = gated(gate);
    progress.join(kept, Progress::Caller::waits_next);
    ASSERT_TRUE(progress.wait(kept, Deadline::after_ms(kPatienceMs)));
    ScriptedTask broken = gated(gate);
    progress.join(broken, Progress::Caller::waits_next);
    ASSERT_TRUE(eventually([&] { return broken.ended(); })) << "round " << round;
    ASSERT_TRUE(eventually([&] { return progress.idle(); }));
  }
}

// No task with a waiting caller was submitted, so the background thread sleeps until it is woken: each of these events is its
// only wakeup.
TEST_F(OnThreads, TheBackgroundThreadIsWokenByTheFirstTaskAndTheLastDeparture) {
  const std::atomic<bool> gate{true};
  for (int round = 0; round < kRounds / 10; ++round) {
    Progress progress(sleeper_, kSpins);
    ScriptedTask first = gated(gate);
    ASSERT_TRUE(progress.submit(first).ok());
    ASSERT_TRUE(eventually([&] { return first.ended() && progress.idle(); }));
    for (int turns = round % 20; turns > 0; --turns) sched_yield();  // so that it is asleep in some rounds only
    ScriptedTask task = gated(gate);
    if (round % 3 == 0) {
      progress.join(task, Progress::Caller::waits_next);
    } else if (round % 3 == 1) {
      progress.attend();
      progress.join(task);
      progress.depart();
    } else {
      progress.attend();
      progress.join(task);
      EXPECT_FALSE(progress.wait(task, Deadline::after_ms(0)));
      progress.depart();
    }
    ASSERT_TRUE(eventually([&] { return task.ended(); })) << "round " << round;
  }
}

TEST_F(OnThreads, TheBackgroundThreadSurvivesATaskThatThrows) {
  Progress progress(sleeper_, kSpins);
  ScriptedTask thrower({[]() -> Step { throw std::bad_alloc(); }, [] { return false; }, &one_, nullptr});
  ASSERT_TRUE(progress.submit(thrower).ok());
  ASSERT_TRUE(eventually([&] { return thrower.ended(); }));
  EXPECT_EQ(thrower.status().code(), Code::unavailable);
  const std::atomic<bool> gate{true};
  ScriptedTask next = gated(gate);
  ASSERT_TRUE(progress.submit(next).ok());
  EXPECT_TRUE(eventually([&] { return next.ended(); }));
}

TEST_F(OnThreads, TheBackgroundThreadInspects) {
  Progress progress(sleeper_, kSpins);
  ScriptedTask task({[] { return Step::blocked; }, [] { return true; }, &one_, nullptr});
  ASSERT_TRUE(progress.submit(task).ok());
  ASSERT_TRUE(eventually([&] { return task.ended(); }));
  EXPECT_EQ(task.status().code(), Code::aborted);
}

// The background thread would sleep for ever; a waiter wakes it and takes the token.
TEST_F(OnThreads, AWaiterTakesOverFromTheBackgroundThread) {
  Progress progress(sleeper_, kSpins);
  const std::atomic<std::thread::id> own{std::this_thread::get_id()};
  for (int round = 0; round < kRounds / 10; ++round) {
    const std::uint64_t sleeps = sleeper_.sleeps();
    ScriptedTask task = bound_to(own);
    ASSERT_TRUE(progress.submit(task).ok());
    if (round % 2 == 0) {
      ASSERT_TRUE(eventually([&] { return sleeper_.sleeps() > sleeps; }));
    }
    ASSERT_TRUE(progress.wait(task, Deadline::after_ms(kPatienceMs))) << "round " << round;
  }
}

// A task submitted while a thread attends is driven by no other thread.
TEST_F(OnThreads, TheBackgroundThreadSleepsWhileAThreadWaits) {
  Progress progress(sleeper_, kSpins);
  ASSERT_TRUE(progress.prepare().ok());
  std::mt19937_64 random(kSeed);
  progress.attend();
  for (int round = 0; round < kRounds; ++round) {
    std::uint64_t left = random() % 4, foreign = 0;
    const std::thread::id own = std::this_thread::get_id();
    ScriptedTask task({[&] {
                         if (std::this_thread::get_id() != own) ++foreign;
                         return left-- == 0 ? Step::ended : Step::moved;
                       },
                       [] { return false; }, &one_, nullptr});
    ASSERT_TRUE(progress.submit(task).ok());
    for (std::uint64_t turns = random() % 8; turns > 0; --turns) sched_yield();  // time for a wrong thread to drive
    while (!task.ended()) progress.pass();
    ASSERT_EQ(foreign, 0U) << "seed " << kSeed << ", round " << round;
  }
  std::atomic<bool> gate{true};
  ScriptedTask left = gated(gate);
  ASSERT_TRUE(progress.submit(left).ok());
  progress.depart();
  EXPECT_TRUE(eventually([&] { return left.ended(); })) << "once no thread attends, it continues";
}

// The holder's own task ends while another thread's task, which only that thread can end, is under way.
TEST_F(OnThreads, TheTokenGoesToAChosenWaiter) {
  for (int round = 0; round < kRounds / 10; ++round) {
    Progress progress(sleeper_, kSpins);
    std::atomic<bool> gate{false};
    std::atomic<std::thread::id> other{};
    ScriptedTask first = gated(gate);
    ScriptedTask second = bound_to(other);
    progress.join(second);  // the token holder drives both
    std::thread holder([&] {
      progress.join(first);
      EXPECT_TRUE(progress.wait(first, Deadline::after_ms(kPatienceMs)));
    });
    ASSERT_TRUE(eventually([&] { return first.advances() > 0; }));
    std::thread waiter([&] {
      other.store(std::this_thread::get_id());
      EXPECT_TRUE(progress.wait(second, Deadline::after_ms(kPatienceMs)));
    });
    ASSERT_TRUE(eventually([&] { return other.load() != std::thread::id{}; }));
    open(gate);
    holder.join();
    waiter.join();
    EXPECT_TRUE(second.ended());
  }
}

TEST_F(OnThreads, AHolderEndsTasksOfOtherWaiters) {
  Progress progress(sleeper_, kSpins);
  std::atomic<std::thread::id> holder_id{};
  ScriptedTask first = gated(never_);
  ScriptedTask second = bound_to(holder_id);
  std::atomic<bool> gate{false};
  ScriptedTask third = gated(gate);
  progress.join(first);
  progress.join(third);
  std::thread holder([&] {
    holder_id.store(std::this_thread::get_id());
    EXPECT_TRUE(progress.wait(third, Deadline::after_ms(kPatienceMs)));
  });
  ASSERT_TRUE(eventually([&] { return third.advances() > 0; }));
  progress.join(second);  // wakes the holder, which may sleep
  EXPECT_TRUE(progress.wait(second, Deadline::after_ms(kPatienceMs)));
  EXPECT_FALSE(progress.wait(first, Deadline::after_ms(3))) << "a deadline without the token";
  EXPECT_FALSE(third.ended());
  open(gate);
  holder.join();
}

TEST_F(OnThreads, ARunDrivesTasksThatAreAddedLater) {
  Progress progress(sleeper_, kSpins);
  std::atomic<bool> gate{false};
  std::atomic<std::thread::id> runner_id{};
  ScriptedTask alone = gated(gate);
  ScriptedTask added = bound_to(runner_id);
  std::thread runner([&] {
    runner_id.store(std::this_thread::get_id());
    progress.run(alone);
  });
  ASSERT_TRUE(eventually([&] { return sleeper_.sleeps() > 0; })) << "asleep in its run";
  ASSERT_TRUE(progress.submit(added).ok());
  EXPECT_TRUE(eventually([&] { return added.ended(); }));
  open(gate);
  runner.join();
}

TEST_F(OnThreads, ItsEndInterruptsASleepAndEndsNoTask) {
  ScriptedTask pending = gated(never_);
  {
    Progress progress(sleeper_, kSpins);
    ASSERT_TRUE(progress.submit(pending).ok());
    ASSERT_TRUE(eventually([&] { return sleeper_.sleeps() > 0; }));
  }
  EXPECT_FALSE(pending.ended());
  EXPECT_FALSE(sleeper_.armed());
  for (int round = 0; round < kRounds / 10; ++round) {  // whatever the thread is doing at that moment
    ScriptedTask each = gated(never_);
    Progress progress(sleeper_, 0);
    ASSERT_TRUE(progress.submit(each).ok());
    for (int turns = round % 7; turns > 0; --turns) sched_yield();
  }
}

std::uint64_t cpu_ns(clockid_t clock) {
  timespec time{};
  EXPECT_EQ(clock_gettime(clock, &time), 0);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

// CPU time of the background thread during a fifth of a second. A virtual machine may charge the thread for time in which its
// core was taken away, so the least of some tries counts.
TEST_F(OnThreads, AnIdleDomainUsesNoCore) {
  constexpr std::chrono::milliseconds kWatched{200};
  // Time passes only while the thread sleeps, so the measured CPU time is that of an idle domain.
  const auto pass_time = [](std::chrono::milliseconds time) {
    std::mutex mutex;
    std::condition_variable nothing;
    std::unique_lock lock(mutex);
    nothing.wait_for(lock, time, [] { return false; });
  };
  sleeper_.instead_of_sleep = [&] { pass_time(std::chrono::milliseconds(5)); };  // like a context that is not woken
  Progress progress(sleeper_, 1000);
  std::atomic<bool> gate{false};
  std::atomic<clockid_t> clock{0};
  ScriptedTask task({[&] {
                       clockid_t own{};
                       pthread_getcpuclockid(pthread_self(), &own);
                       clock.store(own);
                       return gate.load() ? Step::ended : Step::blocked;
                     },
                     [] { return false; }, &one_, nullptr});
  ASSERT_TRUE(progress.submit(task).ok());
  ASSERT_TRUE(eventually([&] { return sleeper_.sleeps() > 2; }));
  const auto used_ns = [&] {
    const std::uint64_t before = cpu_ns(clock.load());
    pass_time(kWatched);
    return cpu_ns(clock.load()) - before;
  };
  constexpr std::uint64_t kBlockedNs = 40'000'000;
  EXPECT_LT(least_of(kMostTries, kBlockedNs, used_ns), kBlockedNs) << "with a task that is blocked, a fifth of a core at most";
  open(gate);
  ASSERT_TRUE(eventually([&] { return progress.idle(); }));
  constexpr std::uint64_t kIdleNs = 2'000'000;
  EXPECT_LT(least_of(kMostTries, kIdleNs, used_ns), kIdleNs) << "with nothing to do";
}

// A task that ends after some steps, or only by inspection.
std::unique_ptr<ScriptedTask> short_task(std::uint64_t left, bool inspected, std::atomic<std::uint64_t>& ended, OneAtATime& one) {
  ScriptedTask::Script script;
  script.one = &one;
  script.advance = [left, inspected, &ended]() mutable {
    if (inspected) return Step::blocked;
    if (left-- > 0) return left % 2 == 0 ? Step::moved : Step::blocked;
    ended.fetch_add(1);
    return Step::ended;
  };
  script.inspect = [inspected, &ended] {
    if (inspected) ended.fetch_add(1);
    return inspected;
  };
  return std::make_unique<ScriptedTask>(std::move(script));
}

// Ends the task in one of the ways that a caller can use.
void bring_to_its_end(Progress& progress, ScriptedTask& task, std::mt19937_64& random) {
  switch (random() % 5) {
    case 0:
      return progress.run(task);
    case 1:
      EXPECT_TRUE(progress.submit(task).ok());
      EXPECT_TRUE(progress.wait(task, Deadline::after_ms(kPatienceMs)));
      return;
    case 2:
      progress.join(task);
      while (!progress.wait(task, Deadline::after_ms(random() % 2))) {
      }
      return;
    case 3:
      EXPECT_TRUE(progress.submit(task).ok());
      EXPECT_TRUE(eventually([&] { return task.ended(); })) << "left to the background thread";
      return;
    default:
      progress.join(task);
      progress.attend();
      for (std::uint32_t idle = 0; !task.ended(); idle = progress.pass() ? 0 : idle + 1) progress.relax(idle % kSpins);
      progress.depart();
  }
}

// All functions concurrently: every task ends exactly once, and may be destroyed at that moment.
TEST_F(OnThreads, ManyUseItAtOnce) {
  constexpr int kThreads = 4;
  Progress progress(sleeper_, kSpins);
  std::atomic<std::uint64_t> ended{0};
  const auto work = [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int round = 0; round < kRounds && !HasFailure(); ++round) {
      const bool inspected = random() % 8 == 0;
      const std::unique_ptr<ScriptedTask> task = short_task(random() % 6, inspected, ended, one_);
      bring_to_its_end(progress, *task, random);
      EXPECT_EQ(task->status().ok(), !inspected);
    }
  };
  const std::uint64_t seed = chosen_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < kThreads; ++i) threads.emplace_back(work, seed * kThreads + i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended.load(), static_cast<std::uint64_t>(kThreads) * kRounds);
  EXPECT_TRUE(eventually([&] { return progress.idle(); }));
}

}  // namespace
}  // namespace seto::testing
