#include "transports/resume/pinned_frames.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>

#include "tests/support/seed.h"
#include "transports/resume/retention.h"

namespace seto::resume {
namespace {

struct Header {};

class Pinned : public ::testing::Test {
 protected:
  std::uint64_t add() { return kept.add(Header{}, {memory.data(), static_cast<std::uint32_t>(memory.size()), lender}, 0); }
  bool acknowledge(std::uint64_t all_up_to) {
    Heard heard;
    heard.all_up_to = all_up_to;
    return kept.acknowledge(heard).ok();
  }

  std::array<std::byte, 1'000> memory{};
  const std::shared_ptr<Lender> lender = std::make_shared<Lender>();
  CopyMemory copies{1 << 20};
  Retention<Header> kept{{1 << 20, 1'000, 0}, copies};
  PinnedFrames pinned;
};

TEST_F(Pinned, StayUntilThePathHasReleasedThem) {
  const std::uint64_t first = add();
  const std::uint64_t second = add();
  pinned.pin(kept, first, 1'064, 5);
  pinned.pin(kept, second, 2'128, 6);
  EXPECT_EQ(pinned.since_ns(), 5U);
  EXPECT_FALSE(kept.give_back(*lender));
  EXPECT_FALSE(pinned.released(kept, 1'063));
  EXPECT_TRUE(pinned.released(kept, 1'064));
  EXPECT_FALSE(kept.give_back(*lender)) << "the second one is read";
  EXPECT_TRUE(lender->needed());
  EXPECT_TRUE(pinned.released(kept, 2'128));
  EXPECT_TRUE(pinned.empty());
  EXPECT_TRUE(kept.give_back(*lender));
  EXPECT_FALSE(lender->needed());
}

// A path takes a payload in parts.
TEST_F(Pinned, AFrameStaysForEachOfItsParts) {
  const std::uint64_t frame = add();
  pinned.pin(kept, frame, 500, 1);
  pinned.pin(kept, frame, 1'064, 2);
  EXPECT_TRUE(pinned.released(kept, 500));
  EXPECT_FALSE(kept.give_back(*lender));
  EXPECT_TRUE(pinned.released(kept, 1'064));
  EXPECT_TRUE(kept.give_back(*lender));
}

TEST_F(Pinned, AnAcknowledgedFrameIsKeptUntilItIsReadNoMore) {
  const std::uint64_t frame = add();
  pinned.pin(kept, frame, 1'064, 1);
  ASSERT_TRUE(acknowledge(frame));
  EXPECT_TRUE(lender->needed());
  EXPECT_FALSE(kept.all_acknowledged());
  pinned.clear(kept);
  EXPECT_FALSE(lender->needed());
  EXPECT_TRUE(kept.all_acknowledged());
}

TEST_F(Pinned, GrowWithManyFrames) {
  std::mt19937_64 random(testing::chosen_seed());
  std::uint64_t end = 0, released = 0, frames = 0;
  for (int turn = 0; turn < 2'000; ++turn) {
    if (random() % 3 != 0) {
      pinned.pin(kept, add(), end += 1'064, 1);
      ++frames;
    } else {
      released = std::min(released + random() % 3'000, end);
      pinned.released(kept, released);
    }
    ASSERT_TRUE(acknowledge(frames));
    ASSERT_EQ(lender->needed(), released < end) << "turn " << turn;
  }
  pinned.clear(kept);
  EXPECT_FALSE(lender->needed());
}

}  // namespace
}  // namespace seto::resume
