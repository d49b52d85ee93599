#include "src/core/turn.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace seto {
namespace {

// More than enough for the turn to lean to the thread that takes it.
constexpr int kMany = 2000;

bool taken_by_another_thread(Turn& turn) {
  bool took = false;
  std::thread([&] {
    took = turn.try_take();
    if (took) turn.give_up();
  }).join();
  return took;
}

TEST(Turn, IsOneThreadsAtATime) {
  Turn turn;
  for (int i = 0; i < kMany; ++i) {
    ASSERT_TRUE(turn.try_take()) << "take " << i;
    const bool stolen = i % 500 == 0 && taken_by_another_thread(turn);
    EXPECT_FALSE(stolen) << "take " << i;
    EXPECT_TRUE(turn.taken());
    turn.give_up();
    EXPECT_FALSE(turn.taken());
  }
}

TEST(Turn, GoesToAnotherThreadThoughItLeanedToThisOne) {
  Turn turn;
  for (int i = 0; i < kMany; ++i) {
    ASSERT_TRUE(turn.try_take());
    turn.give_up();
  }
  EXPECT_TRUE(taken_by_another_thread(turn));
  EXPECT_TRUE(turn.try_take());
  EXPECT_FALSE(taken_by_another_thread(turn));
  turn.give_up();
  EXPECT_TRUE(taken_by_another_thread(turn));
}

// The threads of a tide take it in long rows, so that it leans to each of them again and again while others want it.
TEST(Turn, GuardsWhatIsTouchedUnderIt) {
  constexpr int kThreads = 3;
  constexpr int kRows = 40;
  constexpr int kRow = 700;
  Turn turn;
  long plain = 0;  // a lost update shows here, and to the thread sanitizer
  std::atomic<int> inside{0};
  const auto take = [&] {
    if (!turn.try_take()) return false;
    EXPECT_EQ(inside.fetch_add(1, std::memory_order_relaxed), 0);
    ++plain;
    inside.fetch_sub(1, std::memory_order_relaxed);
    turn.give_up();
    return true;
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      for (int row = 0; row < kRows; ++row)
        for (int taken = 0; taken < kRow;)
          if (take())
            ++taken;
          else
            std::this_thread::yield();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(plain, long{kThreads} * kRows * kRow);
}

}  // namespace
}  // namespace seto
