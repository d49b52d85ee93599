#include "transports/tcp/link/fifo.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>

#include "tests/support/seed.h"

namespace seto::tcp {
namespace {

TEST(Fifo, IsLikeADeque) {
  std::mt19937_64 random(testing::chosen_seed());
  Fifo<int> fifo;
  std::deque<int> expected;
  for (int step = 0; step < 50'000; ++step) {
    // Now it grows, now it shrinks, so that it wraps around at many lengths.
    if (expected.empty() || random() % 100 < (step / 5'000 % 2 == 0 ? 60U : 40U)) {
      fifo.push(step);
      expected.push_back(step);
    } else if (random() % 50 == 0) {
      const int rest = static_cast<int>(random() % 3);
      fifo.drop_if([rest](int each) { return each % 3 == rest; });
      std::erase_if(expected, [rest](int each) { return each % 3 == rest; });
    } else {
      ASSERT_EQ(fifo.front(), expected.front());
      ASSERT_EQ(fifo.pop(), expected.front());
      expected.pop_front();
    }
    ASSERT_EQ(fifo.size(), expected.size());
    ASSERT_EQ(fifo.empty(), expected.empty());
    for (std::size_t i = 0; i < expected.size(); i += 7) ASSERT_EQ(fifo[i], expected[i]);
  }
}

// A queued frame keeps the memory alive from which it is sent, and no longer.
TEST(Fifo, KeepsNothingThatWasTakenOrDropped) {
  const auto item = std::make_shared<int>(1);
  Fifo<std::shared_ptr<int>> fifo;
  for (int i = 0; i < 20; ++i) fifo.push(item);
  EXPECT_EQ(item.use_count(), 21);
  for (int i = 0; i < 5; ++i) (void)fifo.pop();
  EXPECT_EQ(item.use_count(), 16);
  int count = 0;
  fifo.drop_if([&](const std::shared_ptr<int>&) { return ++count % 2 == 0; });
  EXPECT_EQ(fifo.size(), 8U);
  EXPECT_EQ(item.use_count(), 9);
  fifo.drop_if([](const std::shared_ptr<int>&) { return true; });
  EXPECT_TRUE(fifo.empty());
  EXPECT_EQ(item.use_count(), 1);
}

}  // namespace
}  // namespace seto::tcp
