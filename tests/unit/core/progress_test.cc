// Progress on a single thread: which functions it calls, in which order.

#include "src/core/progress/progress.h"

#include <algorithm>
#include <new>
#include <vector>

#include "tests/unit/core/scripted.h"

namespace seto::testing {
namespace {

using Step = Task::Step;

constexpr std::uint32_t kSpins = 8;

// Returns the answers in turn and repeats the last one.
std::function<Step()> steps(std::vector<Step> answers) {
  return
      [answers = std::move(answers), next = std::size_t{0}]() mutable { return answers[std::min(next++, answers.size() - 1)]; };
}

// Checks every sleep in the events: before it, the thread has inspected, armed, and advanced once more.
void expect_right_sleeps(const std::string& events) {
  for (std::size_t at = events.find('S'); at != std::string::npos; at = events.find('S', at + 1)) {
    ASSERT_GE(at, 3U);
    const std::size_t arm = events.rfind('A', at);
    ASSERT_NE(arm, std::string::npos);
    EXPECT_NE(events.find('a', arm), std::string::npos) << events.substr(0, at + 1);
    EXPECT_LT(events.find('a', arm), at) << "sleeps without a look after arming: " << events.substr(0, at + 1);
    EXPECT_EQ(events[arm - 1], 'i') << "sleeps without looking around: " << events.substr(0, at + 1);
    EXPECT_EQ(events[at + 1], 'D');
  }
  EXPECT_EQ(std::count(events.begin(), events.end(), 'A'), std::count(events.begin(), events.end(), 'D'));
}

class OnOneThread : public ::testing::Test {
 protected:
  ScriptedTask task(std::function<Step()> advance) {
    return ScriptedTask({std::move(advance), [] { return false; }, &one_, &events_});
  }

  Events events_;
  OneAtATime one_;
  ScriptedSleeper sleeper_{&events_};
  Progress progress_{sleeper_, kSpins};
};

TEST_F(OnOneThread, RunDrivesToTheEndAndNothingElse) {
  ScriptedTask one = task(steps({Step::moved, Step::blocked, Step::moved, Step::blocked, Step::blocked, Step::ended}));
  progress_.run(one);
  EXPECT_TRUE(one.ended());
  EXPECT_TRUE(one.status().ok());
  EXPECT_EQ(events_.text(), "aaaaaa");
  EXPECT_EQ(one.delays(), 0U);
  EXPECT_TRUE(progress_.idle());
}

TEST_F(OnOneThread, RunSleepsArmedAfterSpinningAndYielding) {
  bool open = false;
  ScriptedTask one = task([&] { return open ? Step::ended : Step::blocked; });
  int sleeps = 0;
  sleeper_.instead_of_sleep = [&] { open = ++sleeps == 3; };
  progress_.run(one);
  EXPECT_TRUE(one.ended());
  EXPECT_EQ(sleeper_.sleeps(), 3U);
  EXPECT_FALSE(sleeper_.armed());
  expect_right_sleeps(events_.text());
}

TEST_F(OnOneThread, AnEventBeforeArmingPreventsTheSleep) {
  ScriptedTask one = task([&] { return sleeper_.armed() ? Step::ended : Step::blocked; });
  progress_.run(one);
  EXPECT_EQ(sleeper_.sleeps(), 0U);
  EXPECT_FALSE(sleeper_.armed());

  bool moved = false;  // advance once more after an inspection that reports progress only
  ScriptedTask two = task([&] {
    if (!sleeper_.armed()) return moved ? Step::ended : Step::blocked;
    moved = true;
    return Step::moved;
  });
  progress_.run(two);
  EXPECT_EQ(sleeper_.sleeps(), 0U);
}

TEST_F(OnOneThread, InspectionEndsARun) {
  int looks = 0;
  ScriptedTask one({[] { return Step::blocked; }, [&] { return ++looks == 5; }, &one_, &events_});
  sleeper_.instead_of_sleep = [] {};
  progress_.run(one);
  EXPECT_EQ(one.status().code(), Code::aborted);
  EXPECT_EQ(looks, 5);
  EXPECT_EQ(events_.text().back(), 'i') << "used after its end";
}

TEST_F(OnOneThread, WaitDrivesAllJoinedTasks) {
  ScriptedTask one = task(steps({Step::moved, Step::ended}));
  ScriptedTask two = task(steps({Step::blocked, Step::moved, Step::moved, Step::ended}));
  ScriptedTask three = task([] { return Step::blocked; });
  for (ScriptedTask* each : {&one, &two, &three}) progress_.join(*each);
  EXPECT_FALSE(progress_.idle());
  EXPECT_EQ(one.advances(), 0U) << "join does not drive";
  EXPECT_TRUE(progress_.wait(two, Deadline::never()));
  EXPECT_TRUE(one.ended());
  EXPECT_EQ(one.advances(), 2U);
  EXPECT_EQ(two.advances(), 4U);
  EXPECT_EQ(three.advances(), 4U) << "one step of each in a round";
  EXPECT_TRUE(progress_.wait(one, Deadline::never())) << "a task that has ended";
  EXPECT_FALSE(progress_.wait(three, Deadline::after_ms(0)));
  EXPECT_EQ(three.advances(), 4U) << "no time, no steps";
}

TEST_F(OnOneThread, WaitSleepsAndInspectsLikeRun) {
  bool open = false;
  ScriptedTask one = task([&] { return open ? Step::ended : Step::blocked; });
  progress_.join(one);
  sleeper_.instead_of_sleep = [&] { open = sleeper_.sleeps() == 3; };
  EXPECT_TRUE(progress_.wait(one, Deadline::never()));
  expect_right_sleeps(events_.text());

  ScriptedTask two({[] { return Step::blocked; }, [] { return true; }, &one_, &events_});
  ScriptedTask three = task([] { return Step::blocked; });
  progress_.join(two);
  progress_.join(three);
  EXPECT_TRUE(progress_.wait(two, Deadline::never()));
  EXPECT_EQ(two.status().code(), Code::aborted);
  EXPECT_EQ(two.inspections(), 1U);
  EXPECT_GE(three.inspections(), 1U) << "all tasks are inspected";
}

TEST_F(OnOneThread, BriefRunsInspectTheTasksOfOthers) {
  ScriptedTask other({[] { return Step::blocked; }, [] { return true; }, &one_, &events_});
  progress_.join(other);
  for (int run = 0; run < 200 && !other.ended(); ++run) {
    ScriptedTask brief = task([] { return Step::ended; });
    progress_.run(brief);
    ASSERT_EQ(brief.advances(), 1U);
    ASSERT_EQ(brief.delays(), 1U) << "others may move first";
  }
  EXPECT_TRUE(other.ended());
}

TEST_F(OnOneThread, WaitEndsWithItsDeadlineAndTheTaskStays) {
  bool open = false;
  ScriptedTask one = task([&] { return open ? Step::ended : Step::blocked; });
  progress_.join(one);
  sleeper_.instead_of_sleep = [] {};
  const std::uint64_t before = monotonic_ns();
  EXPECT_FALSE(progress_.wait(one, Deadline::after_ms(3)));
  EXPECT_GE(monotonic_ns() - before, 3'000'000U);
  EXPECT_FALSE(one.ended());
  EXPECT_FALSE(progress_.idle());
  open = true;
  EXPECT_TRUE(progress_.wait(one, Deadline::after_ms(kPatienceMs)));
  EXPECT_TRUE(progress_.idle());
}

// Two tasks of one context: continuous progress of one task must not hide the deadline or the lost peer of the other.
TEST_F(OnOneThread, ABusyTaskHidesNoDeadline) {
  const Deadline patience = Deadline::after_ms(kPatienceMs);
  ScriptedTask busy = task([&] { return patience.passed() ? Step::ended : Step::moved; });
  ScriptedTask stuck = task([&] { return patience.passed() ? Step::ended : Step::blocked; });
  progress_.join(busy);
  progress_.join(stuck);
  EXPECT_FALSE(progress_.wait(stuck, Deadline::after_ms(3)));
  EXPECT_FALSE(patience.passed());
}

TEST_F(OnOneThread, ABusyTaskDoesNotPreventInspectionOfOthers) {
  const Deadline patience = Deadline::after_ms(kPatienceMs);
  ScriptedTask busy = task([&] { return patience.passed() ? Step::ended : Step::moved; });
  ScriptedTask lost({[&] { return patience.passed() ? Step::ended : Step::blocked; }, [] { return true; }, &one_, nullptr});
  progress_.join(busy);
  progress_.join(lost);
  EXPECT_TRUE(progress_.wait(lost, Deadline::never()));
  EXPECT_EQ(lost.status().code(), Code::aborted);
  EXPECT_FALSE(patience.passed());
}

TEST_F(OnOneThread, ABusyRunIsInspectedAndAcceptsNewTasks) {
  const Deadline patience = Deadline::after_ms(kPatienceMs);
  ScriptedTask aborted({[&] { return patience.passed() ? Step::ended : Step::moved; }, [] { return true; }, &one_, nullptr});
  progress_.run(aborted);
  EXPECT_EQ(aborted.status().code(), Code::aborted);

  ScriptedTask arrival = task(steps({Step::moved, Step::ended}));
  std::uint64_t moves = 0;
  ScriptedTask busy({[&] {
                       if (++moves == 10) progress_.join(arrival);
                       return arrival.ended() || patience.passed() ? Step::ended : Step::moved;
                     },
                     [] { return false; }, nullptr, nullptr});
  progress_.run(busy);
  EXPECT_TRUE(arrival.ended());
  EXPECT_LT(moves, 20U);
  EXPECT_TRUE(progress_.idle());
  EXPECT_FALSE(patience.passed());
}

TEST_F(OnOneThread, PassesInspectAlthoughATaskAlwaysMoves) {
  ScriptedTask busy = task([] { return Step::moved; });
  ScriptedTask lost({[] { return Step::blocked; }, [] { return true; }, &one_, nullptr});
  progress_.join(busy);
  progress_.join(lost);
  std::uint64_t passes = 0;
  while (!lost.ended() && ++passes < 100'000) EXPECT_TRUE(progress_.pass());
  EXPECT_TRUE(lost.ended());
}

TEST_F(OnOneThread, APassIsOneRound) {
  EXPECT_FALSE(progress_.pass()) << "nothing to do";
  ScriptedTask one = task(steps({Step::moved, Step::blocked, Step::blocked, Step::ended}));
  progress_.join(one);
  EXPECT_TRUE(progress_.pass());
  EXPECT_FALSE(progress_.pass()) << "nothing moved";
  EXPECT_FALSE(progress_.pass());
  EXPECT_EQ(one.inspections(), 2U) << "a pass without progress inspects";
  EXPECT_TRUE(progress_.pass());
  EXPECT_TRUE(one.ended());
  EXPECT_FALSE(progress_.pass());
  EXPECT_EQ(sleeper_.sleeps(), 0U);
}

TEST_F(OnOneThread, APassWithinATaskFindsNoToken) {
  bool passed = true;
  ScriptedTask one = task([&] {
    passed = progress_.pass();
    return Step::ended;
  });
  progress_.join(one);
  EXPECT_TRUE(progress_.pass());
  EXPECT_FALSE(passed);
}

TEST_F(OnOneThread, RelaxSleepsOnlyAfterManyIdlePasses) {
  ScriptedTask one = task([] { return Step::blocked; });
  progress_.join(one);
  sleeper_.instead_of_sleep = [] {};
  progress_.attend();
  for (std::uint32_t idle = 0; idle < kSpins; ++idle) progress_.relax(idle);
  EXPECT_EQ(events_.text(), "") << "spins first";
  std::uint32_t idle = kSpins;
  while (sleeper_.sleeps() == 0 && idle < 10'000) progress_.relax(idle++);
  EXPECT_EQ(sleeper_.sleeps(), 1U);
  EXPECT_EQ(events_.text(), "AaSD") << "armed, one check, asleep";
  progress_.depart();
}

TEST_F(OnOneThread, ItMayEndWithTasksPending) {
  ScriptedTask joined = task([] { return Step::blocked; });
  ScriptedTask driven = task([] { return Step::blocked; });
  {
    ScriptedSleeper sleeper;
    Progress progress(sleeper, kSpins);
    progress.join(driven);
    EXPECT_FALSE(progress.pass());
    progress.join(joined);
  }
  EXPECT_EQ(driven.advances(), 1U);
  EXPECT_EQ(joined.advances(), 0U);
}

// ---- tasks that throw ----

Step out_of_memory() { throw std::bad_alloc(); }

TEST_F(OnOneThread, ATaskThatThrowsInARunEndsWithAFailure) {
  ScriptedTask thrower = task(out_of_memory);
  progress_.run(thrower);
  ASSERT_TRUE(thrower.ended());
  EXPECT_EQ(thrower.status().code(), Code::unavailable);
  EXPECT_TRUE(progress_.idle());
}

// The list of active tasks must not keep the address of a task whose owner is gone.
TEST_F(OnOneThread, ATaskThatThrowsEndsAndTheOthersContinue) {
  ScriptedTask other = task(steps({Step::moved, Step::moved, Step::moved, Step::ended}));
  progress_.join(other);
  {
    ScriptedTask thrower = task(out_of_memory);
    progress_.join(thrower);
    EXPECT_TRUE(progress_.wait(thrower, Deadline::after_ms(kPatienceMs)));
    EXPECT_EQ(thrower.status().code(), Code::unavailable);
    ScriptedTask inspected({[] { return Step::blocked; }, [] { return out_of_memory() == Step::ended; }, &one_, &events_});
    progress_.join(inspected);
    EXPECT_TRUE(progress_.wait(inspected, Deadline::after_ms(kPatienceMs)));
    EXPECT_EQ(inspected.status().code(), Code::unavailable);
  }
  EXPECT_TRUE(progress_.wait(other, Deadline::after_ms(kPatienceMs)));
  EXPECT_TRUE(other.status().ok());
  EXPECT_TRUE(progress_.idle());
}

// It neither spins nor yields, until something near moves.
TEST_F(OnOneThread, AWaitForWhatComesFromAfarSleepsAtOnce) {
  int pumps = 0;
  sleeper_.instead_of_pump = [&] { return ++pumps == 1 ? Moved{.far = true} : Moved(); };
  bool open = false;
  sleeper_.instead_of_sleep = [&] { open = true; };
  Progress progress{sleeper_, 4'000'000'000};
  ScriptedTask one = task([&] { return open ? Step::ended : Step::blocked; });
  progress.run(one);
  EXPECT_EQ(sleeper_.sleeps(), 1U);
  EXPECT_EQ(events_.text(), "aaiAaSDa");
}

TEST_F(OnOneThread, NoExceptionKeepsTheToken) {
  ScriptedTask in_a_pass = task(out_of_memory);
  progress_.join(in_a_pass);
  (void)progress_.pass();
  EXPECT_TRUE(in_a_pass.ended());

  sleeper_.instead_of_sleep = [] {};
  ScriptedTask in_relax = task(out_of_memory);
  progress_.join(in_relax);
  progress_.relax(1'000'000);
  EXPECT_TRUE(in_relax.ended());
  EXPECT_FALSE(sleeper_.armed());

  sleeper_.instead_of_pump = [] { return Moved{.near = out_of_memory() == Step::ended}; };
  progress_.pump_once();
  sleeper_.instead_of_pump = nullptr;

  ScriptedTask next = task(steps({Step::moved, Step::ended}));
  progress_.join(next);
  EXPECT_TRUE(progress_.wait(next, Deadline::after_ms(kPatienceMs))) << "the token is free";
}

}  // namespace
}  // namespace seto::testing
