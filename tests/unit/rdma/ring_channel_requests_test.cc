#include <gmock/gmock.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/seed.h"
#include "tests/unit/rdma/channel_ends.h"

// How a channel hands requests to its device, and the places for their completions.
namespace seto::rdma {
namespace {

using support::FakeFabric;
using ::testing::HasSubstr;

class ChannelRequests : public ChannelTest {
 protected:
  ChannelRequests() {
    fabric.add_ethernet("rxe0", "10.0.0.1");
    fabric.add_ethernet("rxe1", "10.0.0.2");
  }
  void exchange_once() {
    ends[0].channel->flush();
    for (int turns = 0; turns < 2; ++turns) {
      fabric.run();
      for (ChannelEnd& end : ends) end.poll();
    }
  }

  FakeFabric fabric{testing::chosen_seed()};
};

// A device copies a short record when it is posted; it fetches a longer one, and bytes of users, later.
TEST_F(ChannelRequests, InlinesWhatIsShort) {
  open(fabric);
  const auto inlines = [&](std::size_t size) {
    const std::size_t before = fabric.inlined();
    EXPECT_TRUE(send(ends[0], std::string(size / 2, 'h'), std::string(size - size / 2, 'b')));
    ends[0].channel->flush();
    return fabric.inlined() > before;
  };
  EXPECT_TRUE(inlines(1));
  EXPECT_TRUE(inlines(188)) << "a header and a short payload";
  EXPECT_FALSE(inlines(1'000));
  exchange_once();
  for (const std::size_t size : {std::size_t{1}, std::size_t{188}, std::size_t{1'000}}) {
    EXPECT_EQ(front(ends[1]), std::string(size / 2, 'h') + std::string(size - size / 2, 'b'));
    ends[1].channel->release();
  }
}

// Short records in bursts, and a reader that keeps up: one report for sixteen requests, those that only tell of room included,
// and one doorbell for a burst.
TEST_F(ChannelRequests, AsksForOneReportInSixteenAndRingsOnceForABurst) {
  constexpr std::size_t kBurst = 10, kBursts = 160;
  open(fabric, 64 << 10, 128);
  const std::size_t before = fabric.doorbells();
  for (std::size_t burst = 0; burst < kBursts; ++burst) {
    for (std::size_t i = 0; i < kBurst; ++i) ASSERT_TRUE(send(ends[0], std::string(100, 'x')));
    exchange_once();
    for (std::size_t i = 0; i < kBurst; ++i) {
      ASSERT_EQ(front(ends[1]).size(), 100U);
      ends[1].channel->release();
    }
  }
  constexpr std::size_t kTold = kBursts * kBurst / (128 / ReceiveRing::kParts);  // messages that tell of room
  EXPECT_GE(fabric.signalled(), kBursts * kBurst / 16 - 1);
  EXPECT_LE(fabric.signalled(), (kBursts * kBurst + kTold) / 16 + 1);
  EXPECT_LE(fabric.doorbells() - before, kBursts + kTold);
}

// The queue grows as far as the device allows. All channels fail at once here, so all their requests complete: a queue that is
// not deep enough overflows, which ends the fake.
TEST_F(ChannelRequests, AQueueOfCompletionsHoldsWhatTheDeviceAllows) {
  constexpr std::uint32_t kRecords = 1'000;
  constexpr std::size_t kPlaces = 2 * (kRecords + ReceiveRing::kMostTold);
  constexpr std::size_t kAllowed = 65'536;
  static_assert(kAllowed > 2 * Completions::kFirstDepth);
  open(fabric);
  ASSERT_TRUE(send(ends[0], "before it grows"));
  exchange_once();
  ASSERT_TRUE(send(ends[1], "while it grows"));
  ends[1].channel->flush();
  fabric.run();
  std::vector<std::unique_ptr<RingChannel>> channels;
  Status status;
  while (status.ok()) {
    auto one = RingChannel::create(setup_of(ends[0], "rank 1", 4 << 10, kRecords));
    status = one.status();
    if (one.ok()) channels.push_back(std::move(one).value());
    ASSERT_LE(channels.size(), kAllowed / kPlaces);
  }
  EXPECT_EQ(channels.size(), (kAllowed - 2 * (32 + ReceiveRing::kMostTold)) / kPlaces);
  EXPECT_THAT(std::string(status.text()), HasSubstr("the completion queue is full: too many peers of one device"));
  ends[0].poll();
  EXPECT_EQ(front(ends[0]), "while it grows");
  for (const auto& channel : channels) channel->break_with(failure(Code::aborted, "the test ends it"));
  channels.pop_back();
  EXPECT_TRUE(RingChannel::create(setup_of(ends[0], "rank 1", 4 << 10, kRecords)).ok()) << "places are given back";
}

TEST_F(ChannelRequests, AQueueOfCompletionsThatDoesNotGrowTakesNoMoreChannels) {
  open(fabric);
  fabric.fail(VerbsCall::grow_completion_queue, ENOSYS);
  std::vector<std::unique_ptr<RingChannel>> channels;
  Result<std::unique_ptr<RingChannel>> one = RingChannel::create(setup_of(ends[0], "rank 1", 4 << 10, 1'000));
  while (one.ok() && channels.size() < 10) {
    channels.push_back(std::move(one).value());
    one = RingChannel::create(setup_of(ends[0], "rank 1", 4 << 10, 1'000));
  }
  EXPECT_THAT(std::string(one.status().text()), HasSubstr("RDMA to rank 1: ibv_resize_cq of rxe0 failed"));
  EXPECT_THAT(std::string(one.status().text()), HasSubstr("goes over TCP"));
  EXPECT_GT(channels.size(), 0U);
  ASSERT_TRUE(send(ends[0], "as before"));
  exchange_once();
  EXPECT_EQ(front(ends[1]), "as before");
}

}  // namespace
}  // namespace seto::rdma
