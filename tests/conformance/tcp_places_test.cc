// Links of which a rail writes payloads where the receiver wants them: its memory is its own again with its call, whatever breaks
// when, and however late a packet comes.

#include "tests/support/tcp_places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "tests/support/eventually.h"
#include "tests/support/sanitizers.h"

namespace seto::tcp {
namespace {

using support::kAll;
using support::kDigest;
using support::kSlice;
using support::kSlices;
using support::NamedBuffer;

class Places : public support::TcpPlaces {};

TEST_F(Places, PayloadsAreWrittenThereByTheDevice) {
  tell();
  send();
  ASSERT_TRUE(run_until([&] { return all_whole(); }));
  EXPECT_EQ(fabric_->bytes_written(), kAll) << "all of it, and each byte once";
  for (std::size_t slice = 0; slice < kSlices; ++slice) EXPECT_EQ(whole(slice)->data, target_.bytes.data() + slice * kSlice);
  expect_right();
  end();
  ASSERT_TRUE(settle());
  EXPECT_NE(ends_[0].link->rail(1), nullptr) << "a call that ends well costs no rail";
  EXPECT_NE(ends_[1].link->rail(1), nullptr);
  EXPECT_TRUE(is_clear());
}

TEST_F(Places, TravelAsBytesUntilTheyAreTold) {
  send(0, 1);
  ASSERT_TRUE(run_until([&] { return whole(0) != nullptr; }));
  EXPECT_EQ(fabric_->bytes_written(), 0U);
  tell();
  send(1);
  ASSERT_TRUE(run_until([&] { return all_whole(); }));
  EXPECT_EQ(fabric_->bytes_written(), kAll - kSlice);
  expect_right();
  end();
}

// The first frame of a slice came before its place was known, and was received into a buffer.
TEST_F(Places, TheRestOfAMessageFollowsIntoItsBuffer) {
  send(0, 1);
  ends_[0].domain->pump();
  ASSERT_TRUE(run_until([&] { return ends_[1].link->heard() > 0 && fabric_->bytes_written() == 0; }));
  tell();
  send(1);
  ASSERT_TRUE(run_until([&] { return all_whole(); }));
  expect_right();
  end();
}

TEST_F(Places, OnlySlicesThatMayBeWritten) {
  want(2);
  ASSERT_TRUE(settle());
  send();
  ASSERT_TRUE(run_until([&] { return all_whole(); }));
  EXPECT_EQ(fabric_->bytes_written(), 2 * kSlice);
  want();  // all of them have come
  expect_right();
  end();
}

// Calls that differ: nothing is written where another call has its memory.
TEST_F(Places, AreOfTheSameCall) {
  want(kSlices, kDigest + 1);
  ASSERT_TRUE(settle());
  send();
  ASSERT_TRUE(run_until([&] { return all_whole(); }));
  EXPECT_EQ(fabric_->bytes_written(), 0U);
  EXPECT_TRUE(is_clear());
}

// Memory without a name has no key, at either end.
TEST_F(Places, NeedANameAtBothEnds) {
  std::vector<std::byte> unnamed = source_.bytes;
  tell();
  {
    const std::lock_guard lock(ends_[0].domain->lock());
    Frame one = frame();
    one.set_kind(FrameKind::data);
    one.mark = mark_of(operation_, 0);
    one.size = kSlice;
    for (std::size_t at = 0; at < kSlice; at += one.length) {
      one.offset = static_cast<std::uint32_t>(at);
      one.length = static_cast<std::uint32_t>(std::min(kStripe, kSlice - at));
      ends_[0].link->queue({one, unnamed.data() + at, nullptr, nullptr});
    }
    ends_[0].domain->note_output();
  }
  send(1);
  ASSERT_TRUE(run_until([&] { return all_whole(); }));
  EXPECT_EQ(fabric_->bytes_written(), kAll - kSlice);
  expect_right();
  end();
}

// Its memory is the receiver's again when the call has returned, though the sender goes on.
TEST_F(Places, NothingIsWrittenAfterACallThatFails) {
  tell();
  send();
  ends_[0].domain->pump();
  step(300);
  EXPECT_FALSE(is_clear()) << "writes are under way";
  displace();
  fabric_->run();
  EXPECT_EQ(fabric_->land_packets(), 0U);
  EXPECT_TRUE(is_clear());
  ASSERT_TRUE(settle());
  EXPECT_EQ(ends_[1].link->rail(1), nullptr);
  EXPECT_TRUE(is_clear());
  ASSERT_TRUE(given_back());
  ASSERT_TRUE(open_rail(0));
  call_in_place();
}

// The communicator is gone at one end: any thread may do that.
TEST_F(Places, NothingIsWrittenAfterItsCommunicator) {
  tell();
  send();
  ends_[0].domain->pump();
  step(300);
  {
    const std::lock_guard lock(ends_[1].domain->lock());
    ends_[1].link->leave(support::kPlacesGroup);
  }
  clear();
  fabric_->run();
  EXPECT_EQ(fabric_->land_packets(), 0U);
  EXPECT_TRUE(is_clear());
}

// The rail breaks at the sender in the middle of a write. The frame comes over the socket, the call ends, and then the rest of
// the first sending comes out of the network.
TEST_F(Places, ALatePacketFindsNoQueuePair) {
  tell();
  send();
  ends_[0].domain->pump();
  step(300);
  fabric_->set_port("a0", 1, rdma::PortState::down);
  ends_[0].domain->prepare_to_sleep();  // takes the event
  ends_[0].domain->pump();
  EXPECT_EQ(ends_[0].link->rail(1), nullptr);
  EXPECT_GT(fabric_->packets_on_their_way(), 0U);
  // The receiver is not told of it, and its end of the rail is whole.
  ASSERT_TRUE(support::eventually([&] {
    ends_[0].domain->pump();
    const std::lock_guard lock(ends_[1].domain->lock());
    (void)ends_[1].link->receive();
    (void)ends_[1].link->flush();
    return all_whole();
  }));
  expect_right();
  end();
  EXPECT_EQ(fabric_->land_packets(), 0U);
  EXPECT_TRUE(is_clear());
  fabric_->set_port("a0", 1, rdma::PortState::active);
}

// Frames of a rail that broke go over the next one, which stays whole: it has not written them.
TEST_F(Places, RepetitionsDoNotEndTheNextRail) {
  tell();
  send();
  ends_[0].domain->pump();
  step(300);
  fabric_->fail_completion(rdma::CompletionStatus::retry_exceeded);
  ASSERT_TRUE(run_until([&] { return ends_[0].link->rail(1) == nullptr && ends_[1].link->rail(1) == nullptr; }));
  ASSERT_TRUE(open_rail(0));
  const std::size_t failed = fabric_->failed();
  ASSERT_TRUE(run_until([&] { return all_whole(); }));
  expect_right();
  end();
  ASSERT_TRUE(settle());
  EXPECT_EQ(fabric_->failed(), failed);
  EXPECT_EQ(fabric_->land_packets(), 0U);
  EXPECT_TRUE(is_clear());
}

// A rail that was ended here, but not yet taken from the link, is ended for a call that fails, too.
TEST_F(Places, ARailThatThePeerHasLostIsEnded) {
  tell();
  send();
  ends_[0].domain->pump();
  step(300);
  {
    const std::lock_guard lock(ends_[1].domain->lock());
    ends_[1].link->peer_lost_rail(1, attempt_);
  }
  displace();
  fabric_->run();
  EXPECT_EQ(fabric_->land_packets(), 0U);
  EXPECT_TRUE(is_clear());
}

// The ring is full of records that were not read: then neither the write nor its record is accepted.
TEST_F(Places, AreWrittenOnceThoughTheQueueIsShort) {
  fabric_->limit_queues(20);
  call_in_place();
}

// The registration ends with the call, not with the link.
TEST_F(Places, LeaveNoRegistrationBehind) {
  const std::size_t before = fabric_->registered_bytes();
  auto memory = std::make_unique<NamedBuffer>(kAll);
  Placement placement;
  placement.operation = operation_;
  placement.first = memory->bytes.data();
  placement.stride = kSlice;
  placement.size = kAll;
  placement.until = kSlices;
  sinks_[1].stream().want(placement, kDigest);
  {
    const std::lock_guard lock(ends_[1].domain->lock());
    EXPECT_TRUE(ends_[1].link->tell_place(frame(), placement));
    ends_[1].domain->note_output();
  }
  ASSERT_TRUE(settle());
  EXPECT_EQ(fabric_->registered_bytes(), before + kAll);
  send();
  ASSERT_TRUE(run_until([&] { return all_whole(); }));
  expect_right();
  end();
  memory.reset();  // takes its name back
  EXPECT_EQ(fabric_->registered_bytes(), before + kAll) << "the sender's is left";
}

// Either rail, either end, at any moment; a call may fail. The memory of the receiver is written over as soon as its call has
// ended, packets are late, and it stays as it is.
TEST_F(Places, AreTheReceiversAgainHoweverRailsBreak) {
  const std::uint64_t calls = support::repetitions(80, 25);
  std::size_t in_place = 0;
  for (std::uint64_t call = 0; call < calls; ++call) {
    for (std::size_t rail = 0; rail < 2; ++rail)
      if (ends_[0].link->wants_rail(1 + rail) || ends_[1].link->wants_rail(1 + rail)) (void)open_rail(rail);
    const bool early = random_() % 4 != 0;
    if (early) want();
    const bool heard = random_() % 4 == 0 || settle();
    ASSERT_TRUE(heard);
    send();
    if (!early) want();
    for (std::size_t turns = random_() % 60; turns > 0; --turns) {
      step(random_() % 300);
      ends_[random_() % 2].domain->pump();
    }
    break_a_rail_or_none();
    const bool fails = random_() % 4 == 0;
    if (fails) {
      displace();
    } else {
      ASSERT_TRUE(support::eventually([&] {
        step(random_() % 300);
        ends_[random_() % 2].domain->pump();
        return all_whole();
      })) << "call "
          << call;
      expect_right();
      in_place += fabric_->bytes_written();
      end();
    }
    if (random_() % 2 == 0) (void)fabric_->land_packets();
    ASSERT_TRUE(support::eventually([&] {
      step(random_() % 300);
      ends_[random_() % 2].domain->pump();
      return given_back();
    })) << "call "
        << call;
    (void)fabric_->land_packets();
    EXPECT_TRUE(is_clear()) << "call " << call;
    fill(source_.bytes);
  }
  ASSERT_TRUE(settle());
  EXPECT_TRUE(is_clear());
  EXPECT_GT(in_place, kAll) << "some calls were written in place";
  EXPECT_FALSE(ends_[0].link->broken() || ends_[1].link->broken());
}

}  // namespace
}  // namespace seto::tcp
