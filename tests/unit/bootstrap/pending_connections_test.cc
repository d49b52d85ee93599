// Connections that have not proved anything yet: how many are served, and how long.

#include "src/bootstrap/rendezvous/pending_connections.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/seed.h"

namespace seto {
namespace {

constexpr int kHours = 3'600'000;

TEST(PendingConnections, AcceptWhileThereIsRoom) {
  PendingConnections pending({2, kHours, kHours});
  EXPECT_TRUE(pending.empty());
  EXPECT_TRUE(pending.accepts());
  pending.add(7);
  EXPECT_TRUE(pending.accepts());
  pending.add(8);
  EXPECT_TRUE(pending.full());
  EXPECT_FALSE(pending.accepts()) << "both are in their turn";
  pending.remove(8);
  EXPECT_TRUE(pending.accepts());
}

TEST(PendingConnections, AcceptOneMoreWhenTheOldestHasHadItsTurn) {
  PendingConnections pending({1, 0, kHours});
  pending.add(7);
  EXPECT_TRUE(pending.full());
  EXPECT_TRUE(pending.accepts());
  EXPECT_EQ(pending.oldest(), 7U);
  EXPECT_TRUE(pending.expired().empty()) << "without another that waits, it may stay";
}

TEST(PendingConnections, ExpireAfterTheirStayOldestFirst) {
  PendingConnections pending({4, 0, 0});
  for (const std::uint64_t id : {5, 3, 9}) pending.add(id);
  EXPECT_EQ(pending.expired(), (std::vector<std::uint64_t>{5, 3, 9}));
  EXPECT_EQ(pending.remaining_ms(), 0);
  pending.remove(5);
  EXPECT_EQ(pending.oldest(), 3U);
}

TEST(PendingConnections, WaitForTheTurnIfFullAndElseForTheStay) {
  constexpr int kTurnMs = 100'000;
  PendingConnections pending({2, kTurnMs, kHours});
  EXPECT_EQ(pending.remaining_ms(), std::numeric_limits<int>::max()) << "none is there";
  pending.add(1);
  EXPECT_GT(pending.remaining_ms(), kTurnMs);
  EXPECT_LE(pending.remaining_ms(), kHours);
  pending.add(2);
  EXPECT_GT(pending.remaining_ms(), 0);
  EXPECT_LE(pending.remaining_ms(), kTurnMs);
}

TEST(PendingConnections, RemoveWhatIsNotThereWithoutHarm) {
  PendingConnections pending({2, kHours, kHours});
  pending.remove(1);
  pending.add(1);
  pending.remove(2);
  EXPECT_EQ(pending.oldest(), 1U);
}

TEST(PendingConnections, KeepTheOrderOfTheirArrival) {
  std::mt19937_64 random(testing::chosen_seed());
  PendingConnections pending({1000, kHours, 0});
  std::vector<std::uint64_t> expected;
  for (std::uint64_t id = 0; id < 500; ++id) {
    pending.add(id);
    expected.push_back(id);
    if (random() % 2 == 0) continue;
    const std::size_t one = random() % expected.size();
    pending.remove(expected[one]);
    expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(one));
  }
  EXPECT_EQ(pending.expired(), expected);
}

}  // namespace
}  // namespace seto
