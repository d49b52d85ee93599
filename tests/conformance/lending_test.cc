// Messages that stay where they are: who may read them, until when, and how they are taken back.

#include <cstring>

#include "tests/support/conformance.h"

namespace seto::support {
namespace {

constexpr StreamGeometry kGeometry{1024, 2, 4, 5};
constexpr std::size_t kAll = std::size_t{1024} * 4;

using Lending = OneThread;

// One sender, all others receive; only where members share an address space.
struct Scene {
  explicit Scene(std::vector<std::unique_ptr<CircleMember>> made) : members(std::move(made)) {
    std::vector<std::uint32_t> receivers;
    for (std::uint32_t member = 1; member < members.size(); ++member) receivers.push_back(member);
    const StreamAddress address{0, static_cast<std::uint8_t>(receivers.size() > 1 ? 1 : 0), 0};
    send = members[0]->circle().open_send(address, receivers, kGeometry).value();
    for (const std::uint32_t receiver : receivers)
      receive.push_back(members[receiver]->circle().open_receive(address, kGeometry).value());
  }
  void begin(std::uint64_t operation) const {
    for (const auto& member : members) member->circle().begin({operation, 0, 0, {}});
  }
  void complete(std::uint64_t operation) const {
    for (const auto& member : members) member->circle().complete(operation);
  }

  std::vector<std::unique_ptr<CircleMember>> members;
  std::unique_ptr<SendStream> send;
  std::vector<std::unique_ptr<ReceiveStream>> receive;
  std::vector<std::byte> memory = std::vector<std::byte>(kAll);
};

TEST_P(Lending, MessagesAreReadWhereTheyLie) {
  const Scene scene(make({.members = 3}));
  if (!scene.send->lends()) {
    for (const auto& receive : scene.receive) EXPECT_FALSE(receive->borrows());
    return;
  }
  for (std::uint64_t operation = 1; operation <= 5; ++operation) {
    scene.begin(operation);
    for (std::uint64_t slice = 0; slice < kGeometry.slices; ++slice) {
      const Mark mark = mark_of(operation, slice);
      ASSERT_TRUE(scene.send->lend(mark, scene.memory.data(), 1024));
      for (const auto& receive : scene.receive) EXPECT_EQ(receive->front(mark), nullptr) << "not committed yet";
      scene.send->commit(mark);
    }
    EXPECT_FALSE(scene.send->taken(operation));
    for (const auto& receive : scene.receive) {
      EXPECT_FALSE(scene.send->taken(operation)) << "another still reads";
      for (std::uint64_t slice = 0; slice < kGeometry.slices; ++slice) {
        const Mark mark = mark_of(operation, slice);
        EXPECT_EQ(receive->front(mark), scene.memory.data() + slice * 1024);
        EXPECT_TRUE(receive->hold(mark));
        receive->release(mark);
      }
    }
    EXPECT_TRUE(scene.send->taken(operation));
    scene.complete(operation);
  }
  for (const auto& member : scene.members) {
    EXPECT_TRUE(member->circle().failure().ok());
    EXPECT_EQ(member->leased(), 0U) << "no slots are needed";
  }
}

TEST_P(Lending, WhatIsRevokedIsReadByNobodyAnyMore) {
  const Scene scene(make({.members = 3}));
  if (!scene.send->lends()) return;
  const Mark mark = mark_of(1, 0);
  scene.begin(1);
  ASSERT_TRUE(scene.send->lend(mark, scene.memory.data(), 1024));
  scene.send->commit(mark);
  for (const auto& receive : scene.receive) ASSERT_NE(receive->front(mark), nullptr);
  ASSERT_TRUE(scene.receive[0]->hold(mark));
  EXPECT_FALSE(scene.send->revoke(1)) << "it is being read";
  EXPECT_FALSE(scene.receive[1]->hold(mark)) << "found, but taken back before it was held";
  EXPECT_FALSE(scene.send->revoke(1));
  scene.receive[0]->release(mark);
  EXPECT_TRUE(scene.send->revoke(1));
  EXPECT_FALSE(scene.receive[0]->hold(mark));
  EXPECT_TRUE(scene.send->revoke(1)) << "a hold that failed holds nothing";
}

TEST_P(Lending, AHoldThatIsLetGoCanBeTakenAgain) {
  const Scene scene(make({.members = 2}));
  if (!scene.send->lends()) return;
  const Mark mark = mark_of(1, 0);
  scene.begin(1);
  ASSERT_TRUE(scene.send->lend(mark, scene.memory.data(), 1024));
  scene.send->commit(mark);
  ASSERT_NE(scene.receive[0]->front(mark), nullptr);
  ASSERT_TRUE(scene.receive[0]->hold(mark));
  scene.receive[0]->let_go(mark);
  ASSERT_TRUE(scene.receive[0]->hold(mark));
  EXPECT_FALSE(scene.send->revoke(1));
}

TEST_P(Lending, AndSlotsTakeTurnsOnOneStream) {
  const Scene scene(make({.members = 2}));
  if (!scene.send->lends()) return;
  for (std::uint64_t operation = 1; operation <= 6; ++operation) {
    scene.begin(operation);
    for (std::uint64_t slice = 0; slice < kGeometry.slices; ++slice) {
      const Mark mark = mark_of(operation, slice);
      if (operation % 2 == 0) {
        ASSERT_TRUE(scene.send->lend(mark, scene.memory.data(), 1024));
      } else {
        std::byte* const slot = scene.send->acquire(mark);
        ASSERT_NE(slot, nullptr);
        write_pattern(slot, kGeometry.slot_size, mark);
      }
      scene.send->commit(mark);
      const std::byte* const message = scene.receive[0]->front(mark);
      ASSERT_NE(message, nullptr);
      EXPECT_EQ(operation % 2 == 0, message == scene.memory.data() + slice * 1024);
      EXPECT_TRUE(operation % 2 == 0 || has_pattern(message, kGeometry.slot_size, mark));
      EXPECT_TRUE(scene.receive[0]->hold(mark));
      scene.receive[0]->release(mark);
    }
    scene.complete(operation);
  }
  EXPECT_TRUE(scene.members[1]->circle().failure().ok());
}

INSTANTIATE_TEST_SUITE_P(All, Lending, ::testing::ValuesIn(one_thread_transports()), name_of_one);

// The owner overwrites its memory as soon as it may: a reader that is late reads garbage, and a race detector sees it.
class LendingAtOnce : public EveryTransport {};

TEST_P(LendingAtOnce, MemoryIsTheOwnersAgainOnceAllWasTaken) {
  const std::uint64_t operations = 3000 / kLess;
  run({}, [operations](CircleMember& member) {
    std::vector<std::uint32_t> receivers;
    for (std::uint32_t other = 1; other < member.circle().members(); ++other) receivers.push_back(other);
    const StreamAddress address{0, static_cast<std::uint8_t>(receivers.size() > 1 ? 1 : 0), 0};
    Circle& circle = member.circle();
    std::unique_ptr<SendStream> send;
    std::unique_ptr<ReceiveStream> receive;
    if (member.index() == 0) send = circle.open_send(address, receivers, kGeometry).value();
    if (member.index() != 0) receive = circle.open_receive(address, kGeometry).value();
    // Where memory is not shared, lending is the sender's affair alone.
    if (!(send != nullptr ? send->lends() : receive->borrows() || !member.shares_memory())) return;
    std::vector<std::byte> memory(kAll);
    for (std::uint64_t operation = 1; operation <= operations; ++operation) {
      circle.begin({operation, 0, 0, {}});
      for (std::uint64_t slice = 0; slice < kGeometry.slices; ++slice) {
        const Mark mark = mark_of(operation, slice);
        if (send != nullptr) {
          write_pattern(memory.data() + slice * 1024, 1024, mark);
          ASSERT_TRUE(awaited(
              member, [&] { return send->lend(mark, memory.data(), 1024); }, 100));
          send->commit(mark);
          continue;
        }
        const std::byte* message = nullptr;
        ASSERT_TRUE(awaited(
            member, [&] { return (message = receive->front(mark)) != nullptr; }, 100));
        ASSERT_TRUE(receive->hold(mark));
        EXPECT_TRUE(has_pattern(message, 1024, mark)) << "operation " << operation << ", slice " << slice;
        receive->release(mark);
      }
      if (send != nullptr) {
        ASSERT_TRUE(awaited(
            member, [&] { return send->taken(operation); }, 100));
        std::memset(memory.data(), 0xee, kAll);
      }
      circle.complete(operation);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, LendingAtOnce, every_transport({2, 4}), name_of_both);

}  // namespace
}  // namespace seto::support
