#include "transports/rdma/link/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "tests/support/seed.h"

namespace seto::rdma {
namespace {

TEST(Ring, ARecordIsPlacedAfterTheLastOne) {
  SendRing ring({16, 8});
  EXPECT_EQ(ring.place(4), 0U);
  EXPECT_EQ(ring.place(5), 4U);
  EXPECT_EQ(ring.end(), 9U);
}

TEST(Ring, ARecordThatWouldCrossTheEndSkipsTheRest) {
  SendRing ring({16, 8});
  EXPECT_EQ(ring.place(12), 0U);
  EXPECT_FALSE(ring.place(8).has_value());
  ring.completed(12);
  ASSERT_TRUE(ring.released(12));
  EXPECT_EQ(ring.place(8), 16U);
}

TEST(Ring, UnitsAreFreeOnceTheyAreReleasedAndCompleted) {
  SendRing released_first({8, 8});
  ASSERT_EQ(released_first.place(8), 0U);
  ASSERT_TRUE(released_first.released(8));
  EXPECT_FALSE(released_first.place(1).has_value()) << "the device may still read them";
  released_first.completed(8);
  EXPECT_EQ(released_first.place(1), 8U);

  SendRing completed_first({8, 8});
  ASSERT_EQ(completed_first.place(8), 0U);
  completed_first.completed(8);
  EXPECT_FALSE(completed_first.place(1).has_value()) << "the peer may still read them";
  ASSERT_TRUE(completed_first.released(8));
  EXPECT_EQ(completed_first.place(1), 8U);
}

TEST(Ring, RecordsAreLimitedToo) {
  SendRing ring({64, 2});
  EXPECT_TRUE(ring.place(1).has_value());
  EXPECT_TRUE(ring.place(1).has_value());
  EXPECT_FALSE(ring.place(1).has_value());
  ring.completed(2);
  ASSERT_TRUE(ring.released(1));
  EXPECT_EQ(ring.place(1), 2U);
}

TEST(Ring, MoreThanWasSentCannotBeReleased) {
  SendRing ring({16, 8});
  ASSERT_TRUE(ring.place(3).has_value());
  EXPECT_FALSE(ring.released(4));
  EXPECT_TRUE(ring.released(3));
  EXPECT_FALSE(ring.released(2)) << "a number never goes back";
}

TEST(Ring, MoreThanFitsCannotArrive) {
  ReceiveRing ring({16, 2});
  EXPECT_FALSE(ring.arrived(0));
  EXPECT_FALSE(ring.arrived(17 * kUnit));
  EXPECT_TRUE(ring.arrived(12 * kUnit));
  EXPECT_FALSE(ring.arrived(5 * kUnit));
  EXPECT_TRUE(ring.arrived(4 * kUnit));
  EXPECT_FALSE(ring.arrived(1)) << "no receive request is left";
}

TEST(Ring, WhatWasReleasedIsDueInParts) {
  ReceiveRing ring({16, 8});
  ASSERT_TRUE(ring.arrived(3 * kUnit));
  ASSERT_TRUE(ring.arrived(kUnit));
  ring.release();
  EXPECT_FALSE(ring.due());
  EXPECT_TRUE(ring.untold());
  ring.release();
  EXPECT_TRUE(ring.due());
  EXPECT_EQ(ring.credit(), 4U);
  ring.told();
  EXPECT_FALSE(ring.due());
  EXPECT_FALSE(ring.untold());
}

TEST(Ring, BothEndsAgreeOverManyRandomRecords) {
  std::mt19937_64 random(testing::chosen_seed());
  const RingSize size{97, 7};
  SendRing sender(size);
  ReceiveRing receiver(size);
  std::uint64_t sent = 0, told = 0;
  std::size_t most_at_once = 0;
  std::deque<std::uint32_t> credits;
  std::deque<std::uint64_t> starts;
  while (sent < 100'000) {
    const std::uint32_t bytes = 1 + static_cast<std::uint32_t>(random() % (24 * kUnit));
    if (const auto start = sender.place(units_of(bytes)); start.has_value()) {
      ASSERT_LE(*start % size.units + units_of(bytes), size.units);
      ASSERT_TRUE(receiver.arrived(bytes)) << "record " << sent;
      starts.push_back(*start);
      ++sent;
    } else {
      ASSERT_NE(receiver.front(), nullptr) << "nothing is unread, and yet there is no room";
    }
    while (random() % 2 == 0 && receiver.front() != nullptr) {
      ASSERT_EQ(receiver.front()->start, starts.front());
      starts.pop_front();
      receiver.release();
      if (!receiver.due()) continue;
      credits.push_back(receiver.credit());
      receiver.told();
      ++told;
    }
    most_at_once = std::max(most_at_once, credits.size());
    if (random() % 3 == 0 || starts.empty()) {
      for (; !credits.empty(); credits.pop_front()) ASSERT_TRUE(sender.released(credits.front()));
      if (starts.empty()) {
        ASSERT_TRUE(sender.released(receiver.credit()));
        receiver.told();
      }
      sender.completed(sender.end());
    }
  }
  EXPECT_GT(told, 1'000U);
  EXPECT_LE(most_at_once, ReceiveRing::kMostTold);
}

TEST(Ring, TheLowBitsOfACreditWrap) {
  SendRing ring({std::uint64_t{1} << 31, 4});
  std::uint64_t end = 0;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(ring.place((std::uint64_t{1} << 31) - 1).value_or(0) % (std::uint64_t{1} << 31), 0U) << i;
    end = ring.end();
    ring.completed(end);
    ASSERT_TRUE(ring.released(static_cast<std::uint32_t>(end))) << i;
    EXPECT_TRUE(ring.all_released());
  }
  EXPECT_GT(end, std::uint64_t{1} << 32);
}

}  // namespace
}  // namespace seto::rdma
