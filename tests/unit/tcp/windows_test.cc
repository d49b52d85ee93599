// The memory that far peers share, and the header of a frame.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/support/seed.h"
#include "transports/tcp/flow/window_budget.h"
#include "transports/tcp/frames/frame.h"

namespace seto::tcp {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

TEST(WindowBudget, DividesItsLimitAmongFarPeers) {
  WindowBudget budget;
  budget.set_limit(12 * kMiB);
  EXPECT_EQ(budget.share(), 12 * kMiB);
  for (int link = 0; link < 3; ++link) budget.add_far_link();
  EXPECT_EQ(budget.share(), 4 * kMiB);
  budget.remove_far_link();
  EXPECT_EQ(budget.share(), 6 * kMiB);
}

TEST(WindowBudget, GrantsWhatIsWantedUpToTheShareOfThePeer) {
  WindowBudget budget;
  budget.set_limit(8 * kMiB);
  budget.add_far_link();
  budget.add_far_link();
  EXPECT_EQ(budget.reserve(kMiB, 0), kMiB);
  EXPECT_EQ(budget.reserve(8 * kMiB, kMiB), 3 * kMiB) << "its share is 4 MiB";
  EXPECT_EQ(budget.reserve(kMiB, 4 * kMiB), 0U);
  EXPECT_EQ(budget.reserve(8 * kMiB, 0), 4 * kMiB) << "the other peer has its own";
  EXPECT_EQ(budget.reserved(), 8 * kMiB);
}

// Shares shrink when links are added, so what was granted before may exceed them.
TEST(WindowBudget, GrantsNothingWhileMoreIsReservedThanTheLimit) {
  WindowBudget budget;
  budget.set_limit(8 * kMiB);
  budget.add_far_link();
  EXPECT_EQ(budget.reserve(8 * kMiB, 0), 8 * kMiB);
  budget.add_far_link();
  EXPECT_EQ(budget.reserve(kMiB, 8 * kMiB), 0U) << "beyond its share";
  EXPECT_EQ(budget.reserve(kMiB, 0), 0U) << "the limit binds";
  budget.give_back(6 * kMiB);
  EXPECT_EQ(budget.reserve(8 * kMiB, 0), 4 * kMiB);
  budget.set_limit(kMiB);
  EXPECT_EQ(budget.reserve(kMiB, 0), 0U);
}

TEST(WindowBudget, NeverGrantsMoreThanItsLimit) {
  std::mt19937_64 random(testing::chosen_seed());
  WindowBudget budget;
  budget.set_limit(64 * kMiB);
  std::vector<std::uint64_t> of_peer(1, 0);
  budget.add_far_link();
  for (int step = 0; step < 5000; ++step) {
    if (random() % 50 == 0) {
      budget.add_far_link();
      of_peer.push_back(0);
    }
    std::uint64_t& own = of_peer[random() % of_peer.size()];
    if (random() % 3 == 0) {
      const std::uint64_t back = own == 0 ? 0 : random() % (own + 1);
      budget.give_back(back);
      own -= back;
    } else {
      own += budget.reserve(random() % (8 * kMiB), own);
    }
    ASSERT_LE(budget.reserved(), budget.limit());
  }
}

TEST(WindowBudget, TellsOnce) {
  WindowBudget budget;
  EXPECT_TRUE(budget.tell_once());
  EXPECT_FALSE(budget.tell_once());
}

TEST(FrameHeader, IsPlausibleForEveryKindAndNoOther) {
  for (unsigned kind = 0; kind < 256; ++kind) {
    Frame frame;
    frame.magic = kFrameMagic | kind;
    EXPECT_EQ(frame.plausible(), kind >= 1 && kind <= kLastFrameKind) << kind;
  }
}

TEST(FrameHeader, WithAnyBitOfTheMagicChangedIsGarbage) {
  for (unsigned bit = 8; bit < 32; ++bit) {
    Frame frame;
    frame.set_kind(FrameKind::data);
    frame.magic ^= 1U << bit;
    EXPECT_FALSE(frame.plausible()) << bit;
  }
}

TEST(FrameHeader, HasAPayloadWithinTheLimit) {
  Frame frame;
  frame.set_kind(FrameKind::data);
  frame.length = kFrameLimit;
  EXPECT_TRUE(frame.plausible());
  ++frame.length;
  EXPECT_FALSE(frame.plausible());
}

TEST(FrameHeader, KeepsAPositionOf64Bits) {
  Frame frame;
  for (const std::uint64_t position : {std::uint64_t{0}, std::uint64_t{0xffffffff}, std::uint64_t{1} << 32, ~std::uint64_t{0}}) {
    frame.set_position(position);
    EXPECT_EQ(frame.position(), position);
  }
}

}  // namespace
}  // namespace seto::tcp
