// How far a sender may be ahead of a receiver over a long link, and that memory stays bounded.

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "tests/support/tcp_peer_groups.h"
#include "transports/optional_streams.h"
#include "transports/tcp/streams/tcp_peer_group.h"

namespace seto::tcp {
namespace {

constexpr std::uint32_t kNearUs = 80;
constexpr std::uint32_t kFarUs = 60'000;  // its window: 30 MB
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr int kPatienceMs = 20'000;

class NoExchange final : public StatusExchange {
 public:
  void ask(std::uint32_t) override {}
  void announce() override {}
};

// Two members, joined by several sockets of that round trip. The second may hold `limit` bytes.
struct TwoMembers {
  explicit TwoMembers(std::uint32_t round_trip_us, std::uint64_t limit = 256 * kMiB, int sockets = 3) {
    std::array<Link::Setup, 2> setups;
    setups[0].session = setups[1].session = Secret::random();
    for (int i = 0; i < sockets; ++i) {
      auto [one, other] = support::connected_over_loopback();
      setups[0].sockets.push_back(std::move(one));
      setups[1].sockets.push_back(std::move(other));
    }
    for (std::uint32_t own : {0U, 1U}) {
      domains[own] = Domain::create().value();
      domains[own]->hurry(true);
      domains[own]->windows().set_limit(limit);
      setups[own].round_trip_us = round_trip_us;
      PeerGroupSetup setup;
      setup.own = own;
      setup.number = 77;
      setup.links.resize(2);
      setup.links[1 - own] = links[own] = domains[own]->add(std::move(setups[own])).value();
      setup.domain = domains[own].get();
      setup.exchange = &exchange;
      groups[own] = TcpPeerGroup::create(std::move(setup)).value();
    }
    pump();
  }

  // Until nothing moves any more: loopback has delivered what was sent.
  void pump() {
    const Deadline until = Deadline::after_ms(kPatienceMs);
    for (int quiet = 0; quiet < 100 && !until.passed();) {
      Moved moved = domains[0]->pump();
      moved |= domains[1]->pump();
      quiet = moved ? 0 : quiet + 1;
    }
  }

  NoExchange exchange;
  std::array<std::unique_ptr<Domain>, 2> domains;
  std::array<std::shared_ptr<Link>, 2> links;
  std::array<std::unique_ptr<TcpPeerGroup>, 2> groups;
};

// Slices of one operation that a sender of lent memory sends before the receiver takes one.
std::uint64_t slices_ahead_of_nobody(TwoMembers& members, const StreamGeometry& geometry) {
  const std::vector<std::byte> memory(geometry.slices * geometry.slot_size);
  const std::vector<std::uint32_t> receivers{1};
  const auto receive = members.groups[1]->open_receive({0, 0, 0}, geometry).value();
  const auto send = members.groups[0]->open_send({0, 0, 0}, receivers, geometry).value();
  members.pump();
  std::uint64_t slice = 0;
  for (; slice < geometry.slices; ++slice) {
    if (!send->lending()->lend(mark_of(1, slice), memory.data(), geometry.slot_size)) break;
    send->commit(mark_of(1, slice), geometry.slot_size);
    members.pump();
  }
  // With any window, credit returns and the rest is sent.
  for (std::uint64_t taken = 0, next = slice; taken < geometry.slices; ++taken) {
    EXPECT_NE(receive->front(mark_of(1, taken)), nullptr) << "slice " << taken;
    receive->release(mark_of(1, taken));
    members.pump();
    for (; next < geometry.slices && send->lending()->lend(mark_of(1, next), memory.data(), geometry.slot_size); ++next)
      send->commit(mark_of(1, next), geometry.slot_size);
    members.pump();
  }
  for (const auto& group : members.groups) EXPECT_TRUE(group->failure().ok()) << group->failure().text();
  return slice;
}

// No status record arrives here, so what is heard came with the data.
TEST(TcpOperations, ASenderThatIsAheadOfASilentReceiverAsksIt) {
  TwoMembers members(kNearUs);
  const StreamGeometry geometry{.slot_size = 1U << 20, .depth = 2, .slices = 2};
  ASSERT_EQ(operations_ahead(geometry), 3U);
  const std::vector<std::uint32_t> receivers{1};
  const auto send = members.groups[0]->open_send({0, 0, 0}, receivers, geometry).value();
  for (const std::uint64_t operation : {1, 2}) members.groups[1]->complete(operation);
  EXPECT_EQ(send->acquire(mark_of(5, 0)), nullptr) << "no frame has told it yet";
  members.pump();
  EXPECT_NE(send->acquire(mark_of(5, 0)), nullptr) << "operation 2 had ended before it was asked for";
  EXPECT_EQ(send->acquire(mark_of(6, 0)), nullptr);
  members.pump();
  EXPECT_EQ(send->acquire(mark_of(6, 0)), nullptr) << "operation 3 is under way";
  members.groups[1]->complete(3);
  members.pump();
  EXPECT_NE(send->acquire(mark_of(6, 0)), nullptr) << "operation 3 has ended after it was asked for";
  for (const auto& group : members.groups) EXPECT_TRUE(group->failure().ok()) << group->failure().text();
}

// The timers of this process.
std::size_t timers() {
  std::size_t count = 0;
  for (const auto& descriptor : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the descriptor of the directory itself
    if (std::filesystem::read_symlink(descriptor.path(), gone) == "anon_inode:[timerfd]") ++count;
  }
  return count;
}

TEST(TcpAlarm, IsMadeOnlyForALinkWhoseFramesMayBeHeldBack) {
  constexpr std::uint32_t kFarButShortUs = 5'000;
  const std::size_t before = timers();
  const auto timers_of = [before](std::uint32_t round_trip_us, int sockets) {
    const TwoMembers members(round_trip_us, 256 * kMiB, sockets);
    return timers() - before;
  };
  EXPECT_EQ(timers_of(kFarUs, 1), 0U) << "one socket has no limit in common with others";
  EXPECT_EQ(timers_of(kFarButShortUs, 3), 0U);
  EXPECT_EQ(timers_of(kFarUs, 3), 2U) << "one for each end";
}

TEST(TcpWindow, OfANearLinkIsAConstant) {
  TwoMembers members(kNearUs);
  EXPECT_EQ(slices_ahead_of_nobody(members, {256 << 10, 2, 40, 1, 0}), 16U);
  EXPECT_EQ(members.domains[1]->windows().reserved(), 0U);
}

TEST(TcpWindow, OfALongLinkFollowsItsRoundTrip) {
  TwoMembers members(kFarUs);
  EXPECT_EQ(slices_ahead_of_nobody(members, {256 << 10, 2, 160, 1, 0}), 30'000'000U / (256 << 10));
}

TEST(TcpWindow, OfALongLinkIsLargerWhereTheCallerAsksForIt) {
  TwoMembers members(kFarUs);
  EXPECT_EQ(slices_ahead_of_nobody(members, {256 << 10, 2, 160, 1, 34 * kMiB}), 136U);
}

// The frame by which a sender tells the rate that it measured.
void tell_rate(TwoMembers& members, std::uint64_t bytes_per_second) {
  Frame frame;
  frame.set_kind(FrameKind::rate);
  frame.mark = bytes_per_second;
  {
    const std::lock_guard lock(members.domains[0]->lock());
    members.links[0]->queue_urgent(frame);
  }
  members.pump();
}

TEST(TcpWindow, FollowsTheRateThatTheSenderHasMeasured) {
  TwoMembers members(kFarUs);
  tell_rate(members, 400'000'000);  // two round trips of it: 48 MB
  EXPECT_EQ(slices_ahead_of_nobody(members, {256 << 10, 2, 200, 1, 0}), 48'000'000U / (256 << 10));
}

TEST(TcpWindow, OfAnOpenStreamGrowsWithTheRateAndNeverShrinks) {
  TwoMembers members(kFarUs);
  const StreamGeometry geometry{256 << 10, 2, 200, 1, 0};
  const auto receive = members.groups[1]->open_receive({0, 0, 0}, geometry).value();
  members.pump();
  const std::uint64_t before = members.domains[1]->windows().reserved();
  tell_rate(members, 10'000'000);
  EXPECT_EQ(members.domains[1]->windows().reserved(), before);
  tell_rate(members, 400'000'000);
  EXPECT_EQ(members.domains[1]->windows().reserved(), before + kWindow * 18'000'000);
  tell_rate(members, 10'000'000);
  EXPECT_EQ(slices_ahead_of_nobody(members, geometry), 48'000'000U / (256 << 10));
}

TEST(TcpWindow, ARateThatNoLinkHasReservesNoMoreThanTheLimit) {
  TwoMembers members(kFarUs, 8 * kMiB);
  const auto receive = members.groups[1]->open_receive({0, 0, 0}, {256 << 10, 2, 1'000, 1, 0}).value();
  tell_rate(members, ~std::uint64_t{0});
  EXPECT_EQ(members.domains[1]->windows().reserved(), 8 * kMiB);
  EXPECT_TRUE(members.groups[1]->failure().ok());
}

TEST(TcpWindow, StaysWithinTheMemoryOfTheContext) {
  TwoMembers members(kFarUs, 8 * kMiB);
  // 4 MiB need no grant, and each of two operations may have 4 MiB of the limit.
  EXPECT_EQ(slices_ahead_of_nobody(members, {256 << 10, 2, 100, 1, 0}), 32U);
  EXPECT_EQ(members.domains[1]->windows().reserved(), 8 * kMiB);
  members.groups[1].reset();
  EXPECT_EQ(members.domains[1]->windows().reserved(), 0U);
}

TEST(TcpWindow, IsSharedAmongFarPeers) {
  WindowBudget budget;
  budget.set_limit(100);
  budget.add_far_link();
  EXPECT_EQ(budget.reserve(70, 0), 70U);
  budget.add_far_link();
  EXPECT_EQ(budget.reserve(70, 0), 30U) << "the limit binds";
  EXPECT_EQ(budget.reserve(1, 70), 0U) << "the first has more than its share by now";
  budget.give_back(70);
  EXPECT_EQ(budget.reserve(70, 30), 20U) << "the share of one of two binds";
  EXPECT_EQ(budget.reserved(), 50U);
}

// A peer that ignores its credit.
TEST(TcpWindow, MoreThanTheCreditIsMalformedInput) {
  ReceiveBuffers buffers;
  ReceiveShare share(buffers);
  InStream stream(share, kMostAheadFar);
  Frame frame;
  frame.set_kind(FrameKind::data);
  frame.size = frame.length = 256 << 10;
  std::uint64_t slice = 0;
  const auto sent = [&] {
    frame.mark = mark_of(1, slice++);
    return stream.place(frame, 0);
  };
  while (slice < kMostAhead) ASSERT_TRUE(sent().ok()) << "slice " << slice;
  EXPECT_FALSE(sent().ok()) << "the window is smaller than 65 of them";
  --slice;
  stream.widen(20 * kMiB);
  while (slice < 80) ASSERT_TRUE(sent().ok()) << "slice " << slice;
  const auto beyond = sent();
  ASSERT_FALSE(beyond.ok());
  EXPECT_NE(std::string(beyond.status().text()).find("more bytes of slices than there is credit for"), std::string::npos);
}

// Bytes of a message that go out before its receiver begins to take it.
std::uint64_t unasked_bytes(TwoMembers& members, std::uint64_t size) {
  const auto receive = members.groups[1]->open_pair_receive(0).value();
  const auto send = members.groups[0]->open_pair_send(1).value();
  const MessageHeader header{size, 5, 0};
  std::uint64_t sent = 0;
  members.pump();
  for (PairPiece piece = send->acquire(header); piece.state == PairPiece::State::ready; piece = send->acquire(header)) {
    sent += piece.size;
    (void)send->commit();
    members.pump();
    if (sent == size) return sent;
  }
  const std::uint64_t unasked = sent;
  for (std::uint64_t taken = 0; taken < size;) {
    const PairPiece theirs = receive->front(header);
    if (theirs.state == PairPiece::State::ready) {
      taken += theirs.size;
      (void)receive->release();
    }
    members.pump();
    const PairPiece piece = sent < size ? send->acquire(header) : PairPiece{};
    if (piece.state == PairPiece::State::ready) {
      sent += piece.size;
      (void)send->commit();
      members.pump();
    } else if (theirs.state != PairPiece::State::ready && taken < size) {
      ADD_FAILURE() << "both ends wait after " << taken << " bytes";
      break;
    }
  }
  return unasked;
}

TEST(TcpWindow, OfMessagesFollowsTheRoundTrip) {
  TwoMembers near(kNearUs);
  EXPECT_EQ(unasked_bytes(near, 40'000'000), kUnasked);
  TwoMembers short_message(kFarUs);
  EXPECT_EQ(unasked_bytes(short_message, 1'000'000), 1'000'000U) << "a message of 1 MB needs no answer";
  TwoMembers long_message(kFarUs);
  const std::uint64_t unasked = unasked_bytes(long_message, 40'000'000);
  EXPECT_GE(unasked, 15'000'000U);
  EXPECT_LE(unasked, 15'000'000U + kPieceSize);
}

}  // namespace
}  // namespace seto::tcp
