// The task that sends what waits for room after the call that made it has ended.

#include "src/core/connect/output_task.h"

#include <gtest/gtest.h>

#include "src/core/progress/call_deadline.h"
#include "src/core/progress/slow_call_warning.h"
#include "tests/unit/core/scripted.h"

namespace seto::testing {
namespace {

using Step = Task::Step;

class ScriptedTransport final : public Transport {
 public:
  int waiting = 0;  // pieces that are not sent
  bool room = true;
  std::function<void()> after_look;  // called after a look that found everything sent

  [[nodiscard]] const char* name() const override { return "scripted"; }
  [[nodiscard]] bool reaches(const Place&, const Place&) const override { return true; }
  [[nodiscard]] Result<Endpoint*> open(OnOutput) override { return failure(Code::internal, "no endpoint"); }
  Moved progress() override {
    if (waiting == 0 || !room) return {};
    --waiting;
    return {.near = true};
  }
  [[nodiscard]] bool unsent() const override {
    const bool any = waiting > 0;
    if (!any && after_look) std::exchange(const_cast<ScriptedTransport*>(this)->after_look, nullptr)();
    return any;
  }
};

class Output : public ::testing::Test {
 protected:
  ScriptedTransport transport_;
  OutputTask task_{transport_};
  ScriptedSleeper sleeper_;
  Progress progress_{sleeper_, 0};
};

TEST_F(Output, MovesAsLongAsThereIsRoomAndEndsWhenAllIsSent) {
  transport_.waiting = 3;
  EXPECT_EQ(task_.advance(), Step::moved);
  EXPECT_EQ(task_.advance(), Step::moved);
  EXPECT_EQ(task_.advance(), Step::ended);
}

TEST_F(Output, BlocksWithoutRoom) {
  transport_.waiting = 1;
  transport_.room = false;
  EXPECT_EQ(task_.advance(), Step::blocked);
  EXPECT_FALSE(task_.inspect());
  transport_.room = true;
  EXPECT_EQ(task_.advance(), Step::ended);
}

TEST_F(Output, IsSubmittedOnceHoweverOftenOutputBeginsToWait) {
  ASSERT_TRUE(progress_.prepare().ok());
  progress_.attend();  // keeps the background thread out
  transport_.waiting = 1;
  for (int time = 0; time < 3; ++time) task_.begin(progress_);
  while (!progress_.idle()) progress_.pass();
  EXPECT_EQ(transport_.waiting, 0);
  transport_.waiting = 2;
  task_.begin(progress_);
  while (!progress_.idle()) progress_.pass();
  EXPECT_EQ(transport_.waiting, 0) << "it begins again after its end";
  progress_.depart();
  progress_.stop();
}

// Output that begins to wait between the last look and the end finds the task still under way, so no thread submits it again.
TEST_F(Output, DoesNotEndWhenOutputCameBetweenItsLookAndItsEnd) {
  transport_.after_look = [this] { transport_.waiting = 1; };
  EXPECT_EQ(task_.advance(), Step::moved);
  EXPECT_EQ(task_.advance(), Step::ended);
  EXPECT_EQ(transport_.waiting, 0);
}

TEST_F(Output, IsNotGivenUpAfterAnException) { EXPECT_FALSE(task_.give_up(failure(Code::unavailable, "out of memory"))); }

TEST(CallDeadline, IsTheCallsOwnIfItHasOne) {
  Config config;
  config.operation_timeout_ms = 1500;
  EXPECT_EQ(CallDeadline(0, config).ms(), 1500U);
  EXPECT_EQ(CallDeadline(0, config).text(), "1500 ms (SETO_OPERATION_TIMEOUT_MS)");
  EXPECT_EQ(CallDeadline(20, config).ms(), 20U);
  EXPECT_EQ(CallDeadline(20, config).text(), "20 ms (its deadlineMs)");
}

TEST(SlowCallWarning, ComesAtHalfOfAShortDeadlineAndAtTenSecondsOfALongOne) {
  EXPECT_EQ(SlowCallWarning::seconds(250), 0.125);
  EXPECT_EQ(SlowCallWarning::seconds(20'000), 10.0);
  EXPECT_EQ(SlowCallWarning::seconds(1'800'000), 10.0);
  EXPECT_EQ(SlowCallWarning::seconds(~std::uint64_t{0}), 10.0);
}

TEST(SlowCallWarning, ComesOnceAndCountsFromTheFirstQuestion) {
  SlowCallWarning soon;
  EXPECT_TRUE(soon.due(0));
  soon.silence();
  EXPECT_FALSE(soon.due(0));
  SlowCallWarning later;
  EXPECT_FALSE(later.due(1'800'000));
  EXPECT_FALSE(later.due(0)) << "the moment was fixed by the first question";
  SlowCallWarning never;
  never.silence();
  EXPECT_FALSE(never.due(0));
}

}  // namespace
}  // namespace seto::testing
