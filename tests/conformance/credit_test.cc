// The conditions under which a sender may write: credit, windows, leases. One thread runs all members, so that each state can be
// checked.

#include <bit>
#include <set>

#include "tests/support/conformance.h"

namespace seto::support {
namespace {

constexpr StreamGeometry kSmall{16, 2, 1, 1};
constexpr StreamGeometry kLarge{1000, 2, 8, 2};

using Credit = OneThread;

void begin(const std::vector<std::unique_ptr<PeerGroupMember>>& members, std::uint64_t operation) {
  for (const auto& member : members) member->peer_group().status().begin({operation, 0, 0, {}});
}

void transfer(Flow& from, Flow& to, std::uint64_t operation) {
  ASSERT_TRUE(from.step(operation));
  ASSERT_TRUE(to.step(operation));
}

TEST_P(Credit, IsUsedUpAtTheDepthUntilTheReceiverReleases) {
  const auto members = make({.members = 2});
  for (std::uint32_t depth = 1; depth <= 4; ++depth) {
    StreamGeometry geometry = kLarge;
    geometry.depth = depth;
    const std::uint64_t operation = depth;
    const auto port = static_cast<std::uint16_t>(depth);
    const auto send = members[0]->peer_group().open_send({0, 0, port}, std::vector{1U}, geometry).value();
    const auto receive = members[1]->peer_group().open_receive({0, 0, port}, geometry).value();
    begin(members, operation);
    for (std::uint64_t slice = 0; slice < geometry.slices; ++slice) {
      const Mark mark = mark_of(operation, slice);
      if (slice >= depth) {
        EXPECT_EQ(send->acquire(mark), nullptr) << "slice " << slice << " of depth " << depth;
        const Mark oldest = mark_of(operation, slice - depth);
        ASSERT_NE(receive->front(oldest), nullptr);
        EXPECT_EQ(send->acquire(mark), nullptr) << "front() does not release";
        receive->release(oldest);
      }
      std::byte* const slot = send->acquire(mark);
      ASSERT_NE(slot, nullptr) << "slice " << slice << " of depth " << depth;
      EXPECT_EQ(send->acquire(mark), slot) << "asking twice";
      EXPECT_EQ(receive->front(mark), nullptr) << "not committed yet";
      write_pattern(slot, geometry.slot_size, mark);
      send->commit(mark, geometry.slot_size);
      const std::byte* const message = receive->front(mark);
      ASSERT_NE(message, nullptr);
      EXPECT_EQ(receive->front(mark), message) << "asking twice";
      EXPECT_TRUE(has_pattern(message, geometry.slot_size, mark));
    }
    for (const auto& member : members) member->peer_group().complete(operation);
  }
}

TEST_P(Credit, OfAWindowComesWithTheReceiversCompletion) {
  for (const StreamGeometry& geometry : {kSmall, StreamGeometry{300, 1, 1, 4}, StreamGeometry{1000, 2, 1, 3}}) {
    const auto members = make({.members = 3});
    Flow send = sending(members[0]->peer_group(), {0, 1, 0}, {1, 2}, geometry);
    Flow fast = receiving(members[1]->peer_group(), 1, {0, 1, 0}, geometry);
    Flow slow = receiving(members[2]->peer_group(), 2, {0, 1, 0}, geometry);
    const std::uint64_t window = kWindow;
    for (std::uint64_t operation = 1; operation <= window; ++operation) {
      begin(members, operation);
      send.next = fast.next = 0;
      transfer(send, fast, operation);
      for (const std::size_t member : {0U, 1U}) members[member]->peer_group().complete(operation);
    }
    begin(members, window + 1);
    send.next = fast.next = 0;
    EXPECT_FALSE(send.step(window + 1)) << "member 2 has not read operation 1";
    EXPECT_TRUE(slow.step(1));
    EXPECT_FALSE(send.step(window + 1)) << "member 2 has not completed operation 1";
    members[2]->peer_group().complete(1);
    transfer(send, fast, window + 1);
    for (const auto& member : members) EXPECT_TRUE(member->peer_group().failure().ok());
  }
}

// A group number does not identify the receivers: another stream may use the line only when no earlier reader is left.
TEST_P(Credit, OfALineCoversItsLastReaders) {
  for (const StreamGeometry& geometry : {kSmall, StreamGeometry{1000, 2, 1, 3}}) {
    const auto members = make({.members = 4});
    PeerGroup& peer_group = members[0]->peer_group();
    Flow first = sending(peer_group, {0, 1, 0}, {1, 2}, geometry);
    Flow second = sending(peer_group, {0, 1, 0}, {2, 3}, geometry);
    Flow late = receiving(members[1]->peer_group(), 1, {0, 1, 0}, geometry);
    const std::uint64_t after = 1 + kWindow;
    ASSERT_TRUE(first.step(1));
    for (std::uint64_t operation = 1; operation < after; ++operation)
      for (const std::size_t member : {0U, 2U, 3U}) members[member]->peer_group().complete(operation);
    EXPECT_FALSE(second.step(after)) << "member 1 still reads";
    EXPECT_TRUE(late.step(1)) << "its message is gone";
    members[1]->peer_group().complete(1);
    EXPECT_TRUE(second.step(after));
  }
}

TEST_P(Credit, LeasesGrowWithTheStreamAndAreReturnedAtTheEnd) {
  const auto members = make({.members = 2});
  EXPECT_EQ(members[0]->leased(), 0U);
  std::uint64_t operation = 0;
  std::size_t before = 0;
  for (const std::uint32_t size : {2000U, 40'000U, 1'000'000U}) {
    Flow send = sending(members[0]->peer_group(), {0, 0, 0}, {1}, {size, 2, 3, size});
    Flow receive = receiving(members[1]->peer_group(), 1, {0, 0, 0}, {size, 2, 3, size});
    for (int i = 0; i < 4; ++i) {
      begin(members, ++operation);
      send.next = receive.next = 0;
      for (int slice = 0; slice < 3; ++slice) transfer(send, receive, operation);
      for (const auto& member : members) member->peer_group().complete(operation);
    }
    const std::size_t leased = members[0]->leased();
    EXPECT_GE(leased, std::size_t{size} * 2);
    EXPECT_LE(leased, std::size_t{size} * 6 * kWindow) << "the smaller slots were kept";
    EXPECT_GT(leased, before);
    before = leased;
  }
  EXPECT_EQ(members[1]->leased(), 0U) << "a member that only receives has no slots";
  members[0]->close(0);
  EXPECT_EQ(members[0]->leased(), 0U);
}

// A stream of long messages uses the same slots in the next operation.
TEST_P(Credit, TheNextOperationKeepsUnreadSlices) {
  constexpr StreamGeometry kLong{100'000, 3, 7, 2};
  const auto members = make({.members = 2});
  const auto send = members[0]->peer_group().open_send({0, 0, 0}, std::vector{1U}, kLong).value();
  const auto receive = members[1]->peer_group().open_receive({0, 0, 0}, kLong).value();
  const auto put = [&](Mark mark) {
    std::byte* const slot = send->acquire(mark);
    if (slot == nullptr) return false;
    write_pattern(slot, kLong.slot_size, mark);
    send->commit(mark, kLong.slot_size);
    return true;
  };
  const auto take = [&](Mark mark) {
    const std::byte* const message = receive->front(mark);
    if (message == nullptr || !has_pattern(message, kLong.slot_size, mark)) return false;
    receive->release(mark);
    return true;
  };
  const std::uint64_t unread = kLong.slices - kLong.depth;
  for (std::uint64_t operation = 1; operation <= 5; operation += 2) {
    begin(members, operation);
    std::uint64_t ahead = 0;  // slices of the next operation sent before this one was read
    for (std::uint64_t slice = 0; slice < kLong.slices; ++slice) {
      ASSERT_TRUE(put(mark_of(operation, slice))) << "slice " << slice;
      if (slice >= unread) continue;
      ASSERT_TRUE(take(mark_of(operation, slice))) << "slice " << slice;
    }
    begin(members, operation + 1);
    while (ahead < kLong.slices && put(mark_of(operation + 1, ahead))) ++ahead;
    EXPECT_LE(ahead, kLong.depth) << "its receiver has not read anything";
    for (std::uint64_t slice = unread; slice < kLong.slices; ++slice) {
      EXPECT_TRUE(take(mark_of(operation, slice))) << "slice " << slice << " of operation " << operation << " is gone";
      while (ahead < kLong.slices && put(mark_of(operation + 1, ahead))) ++ahead;
    }
    for (const auto& member : members) member->peer_group().complete(operation);
    for (std::uint64_t slice = 0; slice < kLong.slices; ++slice) {
      ASSERT_TRUE(take(mark_of(operation + 1, slice))) << "slice " << slice;
      while (ahead < kLong.slices && put(mark_of(operation + 1, ahead))) ++ahead;
    }
    for (const auto& member : members) {
      member->peer_group().complete(operation + 1);
      EXPECT_TRUE(member->peer_group().failure().ok()) << member->peer_group().failure().text();
    }
  }
  EXPECT_LT(members[0]->leased(), std::size_t{kLong.slot_size} * kLong.depth * 2) << "each operation has slots of its own";
}

// Two operations may be in flight, and the later one may fill its slots first.
TEST_P(Credit, OfTwoOperationsTheLaterMayComeFirst) {
  constexpr StreamGeometry kLong{100'000, 2, 7, 2};
  const auto members = make({.members = 2});
  const auto send = members[0]->peer_group().open_send({0, 0, 0}, std::vector{1U}, kLong).value();
  const auto receive = members[1]->peer_group().open_receive({0, 0, 0}, kLong).value();
  std::vector<std::uint64_t> put(9), taken(9);  // slices, by operation
  const auto fill = [&](std::uint64_t operation) {
    while (put[operation] < kLong.slices) {
      const Mark mark = mark_of(operation, put[operation]);
      std::byte* const slot = send->acquire(mark);
      if (slot == nullptr) return;
      write_pattern(slot, kLong.slot_size, mark);
      send->commit(mark, kLong.slot_size);
      ++put[operation];
    }
  };
  const auto empty = [&](std::uint64_t operation) {
    while (taken[operation] < put[operation]) {
      const Mark mark = mark_of(operation, taken[operation]);
      const std::byte* const message = receive->front(mark);
      ASSERT_NE(message, nullptr);
      ASSERT_TRUE(has_pattern(message, kLong.slot_size, mark)) << "slice " << taken[operation] << " of " << operation;
      receive->release(mark);
      ++taken[operation];
    }
  };
  for (std::uint64_t first = 1; first + 1 < put.size(); first += 2) {
    begin(members, first);
    begin(members, first + 1);
    fill(first + 1);
    for (std::uint64_t turn = 0; turn < 2 * kLong.slices; ++turn) {
      fill(first);
      fill(first + 1);
      empty(first + turn % 2);
    }
    for (const std::uint64_t operation : {first, first + 1}) {
      EXPECT_EQ(taken[operation], kLong.slices) << "operation " << operation;
      for (const auto& member : members) member->peer_group().complete(operation);
    }
  }
  for (const auto& member : members) EXPECT_TRUE(member->peer_group().failure().ok()) << member->peer_group().failure().text();
}

// A member that rejects its call ends the operation without having read anything of it.
TEST_P(Credit, OfARejectedOperationIsReturned) {
  constexpr StreamGeometry kLong{100'000, 2, 7, 2};
  const auto members = make({.members = 2});
  Flow send = sending(members[0]->peer_group(), {0, 0, 0}, {1}, kLong);
  begin(members, 1);
  EXPECT_TRUE(send.step(1));
  for (const auto& member : members) member->peer_group().complete(1);
  Flow receive = receiving(members[1]->peer_group(), 1, {0, 0, 0}, kLong);
  begin(members, 2);
  send.next = 0;
  for (std::uint64_t slice = 0; slice < kLong.slices; ++slice) transfer(send, receive, 2);
}

// The next user of the pool must not write to slots that a receiver of the ended group may still read.
TEST_P(Credit, ALeaseStaysWhileAReceiverMayRead) {
  const auto members = make({.members = 2, .peer_groups = 2});
  const StreamGeometry geometry{3000, 1, 1, 9};
  Flow receive = receiving(members[1]->peer_group(), 1, {0, 0, 0}, geometry);
  {
    Flow send = sending(members[0]->peer_group(), {0, 0, 0}, {1}, geometry);
    ASSERT_TRUE(send.step(1));
    members[0]->peer_group().complete(1);
  }
  members[0]->close(0);
  Flow next = sending(members[0]->peer_group(1), {0, 0, 0}, {1}, geometry);
  next.key += 1;
  ASSERT_TRUE(next.step(1));
  EXPECT_TRUE(receive.step(1));
}

TEST_P(Credit, ALeaseIsReturnedWhenItsReceiverHasLeft) {
  const auto members = make({.members = 2});
  {
    Flow send = sending(members[0]->peer_group(), {0, 0, 0}, {1}, {3000, 1, 1, 9});
    ASSERT_TRUE(send.step(1));
  }
  members[1]->peer_group().status().leave({5, 1});
  members[0]->close(0);
  EXPECT_EQ(members[0]->leased(), 0U);
}

TEST_P(Credit, AnExhaustedPoolIsAnErrorWithAText) {
  const auto members = make({.members = 2, .limit_bytes = 256 << 10});
  Flow send = sending(members[0]->peer_group(), {0, 0, 0}, {1}, {1 << 20, 2, 4, 1});
  begin(members, 1);
  EXPECT_FALSE(send.step(1));
  const Status reason = members[0]->peer_group().failure();
  EXPECT_EQ(reason.code(), Code::unavailable);
  EXPECT_NE(reason.text().find("shared memory"), std::string_view::npos) << reason.text();
  EXPECT_FALSE(send.step(1)) << "the failure is permanent";
  EXPECT_EQ(members[0]->leased(), 0U);
  EXPECT_TRUE(members[1]->peer_group().failure().ok());

  const auto whole = make({.members = 2});  // more than the segment has addresses
  Flow huge = sending(whole[0]->peer_group(), {0, 0, 0}, {1}, {1U << 30, 4, 4, 1});
  EXPECT_FALSE(huge.step(1));
  EXPECT_EQ(whole[0]->peer_group().failure().code(), Code::unavailable);
}

// The slots of successive operations lie one behind another.
class MovingSlots : public OneThread {
 protected:
  static constexpr StreamGeometry kMiddle{10'000, 2, 2, 5};
  static constexpr std::uint64_t kOperations = 50;

  struct Scene {
    std::vector<std::unique_ptr<PeerGroupMember>> members;
    Flow send;
    std::vector<Flow> receive;
  };

  Scene scene_of(const PeerGroupsWanted& wanted) const {
    Scene scene;
    scene.members = make(wanted);
    std::vector<std::uint32_t> receivers;
    for (std::uint32_t member = 1; member < wanted.members; ++member) receivers.push_back(member);
    const StreamAddress address{0, static_cast<std::uint8_t>(receivers.size() > 1 ? 1 : 0), 0};
    scene.send = sending(scene.members[0]->peer_group(), address, receivers, kMiddle);
    for (const std::uint32_t receiver : receivers)
      scene.receive.push_back(receiving(scene.members[receiver]->peer_group(), receiver, address, kMiddle));
    return scene;
  }

  static void fill(Scene& scene, std::uint64_t operation) {
    begin(scene.members, operation);
    scene.send.next = 0;
    while (scene.send.step(operation)) {
    }
    EXPECT_TRUE(scene.send.done()) << scene.members[0]->peer_group().failure().text();
  }
  static void read(Scene& scene, std::uint64_t operation) {
    for (Flow& flow : scene.receive) {
      flow.next = 0;
      while (flow.step(operation)) {
      }
      EXPECT_TRUE(flow.done()) << "operation " << operation;
    }
  }
  static void complete(Scene& scene, std::uint64_t operation) {
    for (const auto& member : scene.members) member->peer_group().complete(operation);
  }

  // Returns the different places of the first slice. The sender is always one operation ahead.
  static std::set<const std::byte*> places_of(Scene& scene) {
    std::set<const std::byte*> places;
    for (std::uint64_t operation = 1; operation <= kOperations; ++operation) {
      places.insert(scene.send.send->acquire(mark_of(operation, 0)));
      fill(scene, operation);
      if (operation == 1) continue;
      read(scene, operation - 1);
      complete(scene, operation - 1);
    }
    return places;
  }
};

TEST_P(MovingSlots, ComeBackWhenTheRoomIsUsedUp) {
  for (const std::uint32_t members : {2U, 3U}) {
    const std::size_t lease = (512U << 10) / members;  // a power of two at most
    Scene scene = scene_of({.members = members, .room_to_move_on = 4 * lease * (members - 1)});
    const std::size_t places = places_of(scene).size();
    EXPECT_EQ(places, 2 * (std::bit_floor(lease) / (2 * 10'048))) << "of each of two leases";
    EXPECT_EQ(scene.members[0]->leased(), 2 * std::bit_floor(lease));
  }
}

TEST_P(MovingSlots, StayWithoutRoom) {
  Scene scene = scene_of({.members = 2, .room_to_move_on = 0});
  EXPECT_EQ(places_of(scene).size(), kWindow);
}

TEST_P(MovingSlots, StayWhereTwoOperationsDoNotFitALease) {
  Scene scene = scene_of({.members = 2, .room_to_move_on = 4 * 2 * 10'048});
  EXPECT_EQ(places_of(scene).size(), kWindow);
  EXPECT_EQ(scene.members[0]->leased(), kWindow * (32U << 10));
}

TEST_P(MovingSlots, StayWhereThereIsNoMemoryForMore) {
  for (const PeerGroupsWanted& wanted : {PeerGroupsWanted{.members = 2, .limit_bytes = 256 << 10, .room_to_move_on = 4 << 20},
                                         PeerGroupsWanted{.members = 2, .room_to_move_on = std::size_t{1} << 32}}) {
    Scene scene = scene_of(wanted);
    EXPECT_EQ(places_of(scene).size(), kWindow);
  }
}

TEST_P(MovingSlots, TheLaterOperationMayComeFirst) {
  Scene scene = scene_of({.members = 3, .room_to_move_on = 1 << 20});
  for (std::uint64_t operation = 1; operation < kOperations; operation += 2) {
    fill(scene, operation + 1);
    fill(scene, operation);
    for (const std::uint64_t each : {operation, operation + 1}) {
      read(scene, each);
      complete(scene, each);
    }
  }
}

TEST_P(MovingSlots, ALargerStreamOfThatPortLeavesUnreadSlotsAlone) {
  constexpr StreamGeometry kLong{100'000, 3, 3, 6};
  Scene scene = scene_of({.members = 2, .room_to_move_on = 1 << 20});
  Flow longer = sending(scene.members[0]->peer_group(), {0, 0, 0}, {1}, kLong);
  Flow longer_read = receiving(scene.members[1]->peer_group(), 1, {0, 0, 0}, kLong);
  for (std::uint64_t operation = 1; operation < kOperations; operation += 2) {
    fill(scene, operation);
    begin(scene.members, operation + 1);
    longer.next = longer_read.next = 0;
    for (std::uint64_t slice = 0; slice < kLong.slices; ++slice) ASSERT_TRUE(longer.step(operation + 1));
    read(scene, operation);
    complete(scene, operation);
    for (std::uint64_t slice = 0; slice < kLong.slices; ++slice) ASSERT_TRUE(longer_read.step(operation + 1));
    complete(scene, operation + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(ByOffset, MovingSlots, ::testing::Values(&lending_by_offset()), name_of_one);

TEST_P(Credit, InvalidStreamsAreRejected) {
  const auto members = make({.members = 2, .ports = 4});
  PeerGroup& peer_group = members[0]->peer_group();
  const auto refused = [](const auto& result, std::string_view why) {
    ASSERT_FALSE(result.ok());
    EXPECT_NE(result.status().text().find(why), std::string_view::npos) << result.status().text();
  };
  const std::vector<std::uint32_t> peer{1};
  refused(peer_group.open_send({0, 0, 4}, peer, kSmall), "port 4");
  refused(peer_group.open_receive({1, 0, 4}, kSmall), "port 4");
  refused(peer_group.open_send({0, 200, 0}, peer, kSmall), "group 200");
  refused(peer_group.open_receive({2, 0, 0}, kSmall), "sender 2");
  refused(peer_group.open_send({0, 0, 0}, {}, kSmall), "0 receivers");
  refused(peer_group.open_send({0, 0, 0}, std::vector{1U, 0U}, kSmall), "2 receivers");
  refused(peer_group.open_send({0, 1, 0}, std::vector{1U, 2U}, kSmall), "members are 0 to 1");
  refused(peer_group.open_send({0, 0, 0}, peer, {16, 1, kMaxSlices + 1, 0}), "slices");
  refused(peer_group.open_receive({1, 0, 0}, {16, 1, kMaxSlices + 1, 0}), "slices");
  refused(peer_group.open_send({0, 0, 0}, peer, {16, 1, 0, 0}), "0 slices");
  refused(peer_group.open_send({0, 0, 0}, peer, {~0U, 1, 2, 0}), "4294967295");
  EXPECT_TRUE(peer_group.failure().ok()) << "a refused stream must not affect others";
}

INSTANTIATE_TEST_SUITE_P(All, Credit, ::testing::ValuesIn(one_thread_transports()), name_of_one);

}  // namespace
}  // namespace seto::support
