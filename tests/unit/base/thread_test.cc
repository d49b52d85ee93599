#include "src/base/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <csignal>
#include <latch>
#include <thread>
#include <vector>

#include "src/base/clock.h"

namespace seto {
namespace {

TEST(Thread, BlocksSignalsAndItsMakerDoesNot) {
  int blocked = 0;
  auto thread = start_thread("seto-test", [&] {
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, nullptr, &set);
    blocked = sigismember(&set, SIGUSR1) + sigismember(&set, SIGINT);
  });
  ASSERT_TRUE(thread.ok());
  thread->join();
  EXPECT_EQ(blocked, 2);
  sigset_t mine;
  pthread_sigmask(SIG_SETMASK, nullptr, &mine);
  EXPECT_EQ(sigismember(&mine, SIGUSR1), 0);
}

TEST(SideBySide, EachNumberIsDoneOnceAndTogether) {
  std::latch all_under_way(4);
  std::vector<std::atomic<int>> done(4);
  const Status outcome = side_by_side(done.size(), 4, [&](std::size_t number, const std::atomic<bool>&) {
    all_under_way.arrive_and_wait();  // hangs unless all four run at the same time
    ++done[number];
    return Status();
  });
  EXPECT_TRUE(outcome.ok());
  for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1);
}

TEST(SideBySide, OneAtATimeKeepsTheOrder) {
  std::vector<std::size_t> order;
  EXPECT_TRUE(side_by_side(5, 1, [&](std::size_t number, const std::atomic<bool>&) {
                order.push_back(number);
                return Status();
              }).ok());
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

TEST(SideBySide, NoCallBeginsAfterAFailure) {
  std::atomic<int> begun = 0;
  const Status outcome = side_by_side(100, 1, [&](std::size_t number, const std::atomic<bool>&) {
    ++begun;
    return number == 3 ? failure(Code::remote_error, "three") : Status();
  });
  EXPECT_EQ(outcome.text(), "three");
  EXPECT_EQ(begun, 4);
}

// The waiting call ends because the other has failed, and its own failure is not the reported one.
TEST(SideBySide, TheFirstFailureEndsTheOthersAndIsReported) {
  std::latch both(2);
  const Status outcome = side_by_side(2, 2, [&](std::size_t number, const std::atomic<bool>& hopeless) {
    both.arrive_and_wait();
    if (number == 1) return failure(Code::remote_error, "the cause");
    const Deadline until = Deadline::after_ms(20'000).unless(&hopeless);
    while (!until.passed()) std::this_thread::yield();
    return failure(Code::timeout, "%s", until.stopped() ? "what follows" : "it was not stopped");
  });
  EXPECT_EQ(outcome.text(), "the cause");
}

TEST(SideBySide, NoCallsAreSuccess) {
  EXPECT_TRUE(side_by_side(0, 8, [](std::size_t, const std::atomic<bool>&) { return failure(Code::internal, "called"); }).ok());
}

}  // namespace
}  // namespace seto
