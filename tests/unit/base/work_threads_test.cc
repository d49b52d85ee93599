#include "src/base/work_threads.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

namespace seto {
namespace {

// Counts, and lets threads wait for a count.
class Counter final {
 public:
  void add() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  void await(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ >= count; });
  }
  [[nodiscard]] int count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

TEST(WorkThreads, DoAllWork) {
  WorkThreads threads("test", 3);
  Counter done;
  for (int round = 1; round <= 5; ++round) {  // threads end between rounds, or do not
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(threads.add([&] { done.add(); }).ok());
    done.await(20 * round);
  }
}

TEST(WorkThreads, WorkOnAsManyThreadsAsAllowed) {
  WorkThreads threads("test", 3);
  Counter begun;
  Counter go;
  Counter done;
  for (int i = 0; i < 4; ++i)
    ASSERT_TRUE(threads
                    .add([&] {
                      begun.add();
                      go.await(1);
                      done.add();
                    })
                    .ok());
  begun.await(3);
  EXPECT_EQ(begun.count(), 3) << "the fourth waits for a thread";
  EXPECT_EQ(threads.active(), 3U);
  go.add();
  done.await(4);
}

TEST(WorkThreads, StopDropsWhatHasNotBegun) {
  WorkThreads threads("test", 1);
  Counter begun;
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(threads
                    .add([&] {
                      begun.add();
                      while (!threads.stopping()) std::this_thread::yield();
                    })
                    .ok());
  begun.await(1);
  threads.stop();
  EXPECT_EQ(begun.count(), 1);
  ASSERT_TRUE(threads.add([&] { begun.add(); }).ok());
  threads.stop();
  EXPECT_EQ(begun.count(), 1);
}

// The end of what work holds may add work itself.
TEST(WorkThreads, HoldNoLockWhileWorkEnds) {
  WorkThreads threads("test", 1);
  Counter done;
  struct AddsAtItsEnd {
    WorkThreads& threads;
    Counter& done;
    ~AddsAtItsEnd() {
      EXPECT_TRUE(threads.add([this_done = &done] { this_done->add(); }).ok());
    }
  };
  auto held = std::make_shared<AddsAtItsEnd>(threads, done);
  ASSERT_TRUE(threads.add([held] {}).ok());
  held.reset();
  done.await(1);
}

}  // namespace
}  // namespace seto
