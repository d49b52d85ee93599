// Rails of a link: paths over RDMA beside its socket, here over fake devices.

#include "tests/support/tcp_rails.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/support/context_peer_groups.h"
#include "tests/support/flows.h"
#include "tests/support/sanitizers.h"

namespace seto::tcp {
namespace {

using support::FakeFabric;
using support::RailEnd;
using support::TcpRails;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(TcpRails, CarryDataOnceTheyAreThere) {
  auto expected = queue(0, 100'000, 70'000);
  ASSERT_TRUE(arrive(1, expected)) << "over the socket";
  EXPECT_FALSE(on_rails(0));
  EXPECT_EQ(fabric_->doorbells(), 0U);
  ASSERT_TRUE(open_rail(0) && open_rail(1));
  ASSERT_TRUE(settle());
  EXPECT_THAT(ways(), ElementsAre(StartsWith("TCP"), HasSubstr("RDMA a0 port 1"), HasSubstr("RDMA a1 port 1")));
  const std::size_t before = fabric_->doorbells();
  expected.merge(queue(0, 3'000'000, 65'536));
  ASSERT_TRUE(arrive(1, expected));
  EXPECT_TRUE(on_rails(0));
  EXPECT_GT(fabric_->doorbells() - before, 3'000'000U / (65'536 * 8)) << "a doorbell hands over eight frames at most";
  ASSERT_TRUE(settle());
  EXPECT_TRUE(run_until([&] { return ends_[0].link->delivered(); }));
}

// The rest of what the rail had taken comes over the socket.
TEST_F(TcpRails, BreakInTheMiddle) {
  ASSERT_TRUE(open_rail(0));
  ASSERT_TRUE(settle());
  const auto expected = queue(0, 4'000'000, 65'536);
  ends_[0].domain->pump();
  for (int steps = 0; steps < 300; ++steps) fabric_->step();
  pump();
  EXPECT_TRUE(on_rails(0));
  EXPECT_FALSE(ends_[0].link->delivered());
  fabric_->fail_completion(rdma::CompletionStatus::retry_exceeded);
  ASSERT_TRUE(arrive(1, expected));
  EXPECT_FALSE(on_rails(0));
  EXPECT_FALSE(ends_[0].link->has_live_rail());
  ASSERT_TRUE(settle());
  ASSERT_TRUE(open_rail(0)) << "and a new one takes over";
  auto more = queue(0, 100'000, 65'536);
  more.insert(expected.begin(), expected.end());
  ASSERT_TRUE(arrive(1, more));
  EXPECT_TRUE(on_rails(0));
}

// The other rail carries everything, and no frame goes over the socket.
TEST_F(TcpRails, ALostPortLeavesTheOtherRail) {
  ASSERT_TRUE(open_rail(0) && open_rail(1));
  ASSERT_TRUE(settle());
  const auto expected = queue(0, 4'000'000, 65'536);
  ends_[0].domain->pump();
  for (int steps = 0; steps < 300; ++steps) fabric_->step();
  fabric_->set_port("a0", 1, rdma::PortState::down);
  ends_[0].domain->prepare_to_sleep();  // takes the event
  ASSERT_TRUE(arrive(1, expected));
  EXPECT_TRUE(on_rails(0));
  EXPECT_EQ(ends_[0].link->rail(1), nullptr);
  EXPECT_NE(ends_[0].link->rail(2), nullptr);
}

// The devices have done their part, and the program of the receiver learns of the frame only after its port went down. The sender
// has nothing more to send that its device could fail with.
TEST_F(TcpRails, WhatTheReceiverDidNotReadComesAgain) {
  for (std::size_t to = 0; to < 2; ++to) {
    ASSERT_TRUE(open_rail(0));
    ASSERT_TRUE(settle());
    ends_[to].frames.whole.clear();
    const auto expected = queue(1 - to, 1, 1);
    ends_[1 - to].domain->pump();
    EXPECT_TRUE(on_rails(1 - to));
    fabric_->run();
    const std::string port = to == 0 ? "a0" : "b0";
    fabric_->set_port(port, 1, rdma::PortState::down);
    ends_[to].domain->prepare_to_sleep();  // takes the event before the completion
    fabric_->set_port(port, 1, rdma::PortState::active);
    ends_[to].domain->prepare_to_sleep();
    ASSERT_TRUE(arrive(to, expected)) << "end " << to;
    ASSERT_TRUE(settle());
    for (const RailEnd& end : ends_) EXPECT_EQ(end.link->rail(1), nullptr) << "both ends know it";
  }
}

// A message about a rail that has been replaced comes late.
TEST_F(TcpRails, OutliveThoseThatTheyReplace) {
  ASSERT_TRUE(open_rail(0));
  ASSERT_TRUE(open_rail(0));
  ASSERT_TRUE(settle());
  {
    const std::lock_guard lock(ends_[0].domain->lock());
    ends_[0].link->peer_lost_rail(1, 1);
  }
  pump();
  for (const RailEnd& end : ends_) EXPECT_NE(end.link->rail(1), nullptr);
  const std::lock_guard lock(ends_[0].domain->lock());
  ends_[0].link->peer_lost_rail(1, 2);
  EXPECT_EQ(ends_[0].link->rail(1), nullptr);
}

// The peer has lost it before this end has begun to use it.
TEST_F(TcpRails, AreNotTakenWhenThePeerHasLostThem) {
  auto [one, other] = support::connect_pipes(ends_[0].host->pipes(), ends_[1].host->pipes(), [this] { go_on(); });
  {
    const std::lock_guard lock(ends_[0].domain->lock());
    ASSERT_TRUE(ends_[0].domain->take_path(*ends_[0].link, 1, PathPipe(std::move(one)), 1));
    ends_[0].link->peer_lost_rail(1, 1);
    EXPECT_FALSE(ends_[0].link->has_offers());
  }
  pump();
  std::tie(one, other) = support::connect_pipes(ends_[0].host->pipes(), ends_[1].host->pipes(), [this] { go_on(); });
  {
    const std::lock_guard lock(ends_[1].domain->lock());
    ASSERT_TRUE(ends_[1].domain->take_path(*ends_[1].link, 1, PathPipe(std::move(other)), 2));
  }
  pump();
  EXPECT_NE(ends_[1].link->rail(1), nullptr);
  {
    const std::lock_guard lock(ends_[0].domain->lock());
    ASSERT_TRUE(ends_[0].domain->take_path(*ends_[0].link, 1, PathPipe(std::move(one)), 2));
    ends_[0].link->peer_lost_rail(1, kAnyAttempt);
    EXPECT_FALSE(ends_[0].link->has_offers());
  }
  pump();
  EXPECT_EQ(ends_[1].link->rail(1), nullptr) << "the peer is told if it may use it";
  const auto expected = queue(0, 1, 1);
  ASSERT_TRUE(arrive(1, expected));
  EXPECT_EQ(ends_[0].link->rail(1), nullptr);
  EXPECT_FALSE(on_rails(0));
}

// At any moment, any rail, either end; both directions.
TEST_F(TcpRails, EachFrameComesOnceHoweverRailsBreak) {
  std::map<std::uint64_t, std::string> expected[2];
  for (std::uint64_t call = 0; call < support::repetitions(40, 12); ++call) {
    for (std::size_t rail = 0; rail < 2; ++rail)
      if (ends_[0].link->wants_rail(1 + rail) || ends_[1].link->wants_rail(1 + rail)) (void)open_rail(rail);
    for (std::size_t end = 0; end < 2; ++end) expected[1 - end].merge(queue(end, 200'000, call % 2 == 0 ? 70 : 65'536));
    for (std::size_t turns = random_() % 40; turns > 0; --turns) {
      for (std::size_t steps = random_() % 100; steps > 0; --steps) fabric_->step();
      ends_[random_() % 2].domain->pump();
    }
    break_a_rail_or_none();
  }
  for (std::size_t end = 0; end < 2; ++end) ASSERT_TRUE(arrive(end, expected[end])) << "end " << end;
  EXPECT_TRUE(settle()) << "all is acknowledged";
  EXPECT_FALSE(ends_[0].link->broken() || ends_[1].link->broken());
}

// The end of the sockets tells it, behind everything that came over rails.
TEST_F(TcpRails, TheEndOfTheLinkComesBehindItsData) {
  ASSERT_TRUE(open_rail(0));
  ASSERT_TRUE(settle());
  const auto expected = queue(0, 100'000, 65'536);
  ends_[0].domain->pump();
  fabric_->run();
  {
    const std::lock_guard lock(ends_[0].domain->lock());
    ends_[0].link->leave(support::kRailsGroup);
    ends_[0].link->retire();
  }
  ends_[0].domain->hurry(true);
  ends_[0].domain->close();
  EXPECT_TRUE(support::eventually([&] {
    ends_[1].domain->pump();
    return ends_[1].link->broken();
  }));
  EXPECT_EQ(ends_[1].frames.whole, expected);
  EXPECT_EQ(ends_[1].link->why().text(), closed_by_peer().text());
}

class TcpRailsAsleep : public TcpRails {
 protected:
  TcpRailsAsleep() : TcpRails(FakeFabric::Drive::by_thread) {}
};

// Each end sleeps until the frame of the other one wakes it.
TEST_F(TcpRailsAsleep, LoseNoWakeup) {
  ASSERT_TRUE(open_rail(0));
  constexpr std::size_t kTurns = 300;
  for (std::size_t turn = 0; turn < kTurns; ++turn) {
    const std::size_t from = turn % 2;
    RailEnd& to = ends_[1 - from];
    const auto there = [&] {
      to.domain->pump();
      return to.frames.whole.count(turn + 1) != 0;
    };
    std::thread sleeper([&] {
      while (!there()) {
        to.domain->prepare_to_sleep();
        if (there()) return;
        pollfd event{to.domain->descriptor(), POLLIN, 0};
        ASSERT_EQ(poll(&event, 1, 20'000), 1) << "turn " << turn << ": it was not woken";
      }
    });
    if (turn % 3 == 0) (void)poll(nullptr, 0, 1);  // it sleeps by then, mostly
    queue(from, 1, 1);                             // one frame
    ends_[from].domain->pump();
    sleeper.join();
    if (::testing::Test::HasFailure()) return;
    ends_[from].domain->pump();
  }
  EXPECT_TRUE(on_rails(0) && on_rails(1));
}

class RailsOfContexts : public ::testing::TestWithParam<support::Rails> {};

// The ends of contexts set rails up by messages; again and again, or only with those that have a device, or once data flows.
TEST_P(RailsOfContexts, CarryStreams) {
  EXPECT_TRUE(support::rdma_transport(GetParam()).run({.members = 3}, [](support::PeerGroupMember& member) {
    PeerGroup& group = member.peer_group();
    std::vector<support::Flow> flows;
    const StreamGeometry geometry{70'000, 2, 5, 77};
    for (std::uint32_t peer = 0; peer < group.members(); ++peer) {
      if (peer == member.index()) continue;
      flows.push_back(support::sending(group, {member.index(), 0, 0}, {peer}, geometry));
      flows.push_back(support::receiving(group, member.index(), {peer, 0, 0}, geometry));
    }
    for (std::uint64_t operation = 1; operation <= 150; ++operation)
      if (!support::operate(group, flows, operation)) return;
  }));
}

// Members send by turns, and each receiver loses its rail when the devices have done their part, but its program has seen
// nothing.
TEST(RailsOfContextsPulled, LoseNoMessage) {
  constexpr std::uint64_t kOperations = 12;
  std::atomic<std::uint64_t> sent{0}, whole{0}, over{0};
  EXPECT_TRUE(support::rdma_transport(support::Rails::pulled).run({.members = 2}, [&](support::PeerGroupMember& member) {
    PeerGroup& group = member.peer_group();
    const StreamGeometry geometry{64, 2, 1, 77};
    std::vector<support::Flow> out, in;
    out.push_back(support::sending(group, {member.index(), 0, 0}, {1 - member.index()}, geometry));
    in.push_back(support::receiving(group, member.index(), {1 - member.index(), 0, 0}, geometry));
    const auto attend_until = [&](const auto& condition) {
      EXPECT_TRUE(support::eventually([&] { return member.attend(), condition(); }));
    };
    for (std::uint64_t operation = 1; operation <= kOperations; ++operation) {
      // Nothing is left to tell, and the rail is there again.
      const Deadline quiet = Deadline::after_ms(400);
      attend_until([&] { return quiet.passed(); });
      ++whole;
      attend_until([&] { return whole >= 2 * operation; });
      if (operation % 2 == member.index()) {
        ASSERT_TRUE(support::operate(group, out, operation));
        sent = operation;
      } else {
        ASSERT_TRUE(support::eventually([&] { return sent >= operation; }));
        (void)poll(nullptr, 0, 5);  // the devices go on
        member.arm();
        member.disarm();
        ASSERT_TRUE(support::operate(group, in, operation));
        over = operation;
      }
      attend_until([&] { return over >= operation; });
    }
  }));
}

std::string name_of_rails(const ::testing::TestParamInfo<support::Rails>& info) {
  return support::rdma_transport(info.param).name();
}

INSTANTIATE_TEST_SUITE_P(All, RailsOfContexts,
                         ::testing::Values(support::Rails::cut, support::Rails::but_last, support::Rails::first_use,
                                           support::Rails::traffic, support::Rails::shared),
                         name_of_rails);

}  // namespace
}  // namespace seto::tcp
