// Lent messages: which members may read them, until when, and how they are revoked.

#include <cstring>

#include "tests/support/conformance.h"
#include "transports/partial_lender.h"

namespace seto::support {
namespace {

constexpr StreamGeometry kGeometry{1024, 2, 4, 5};
constexpr std::size_t kAll = std::size_t{1024} * 4;

constexpr std::uint64_t kInSlots = 3;  // see TestPartner

using Lending = OneThread;

// How the stream lends memory of lendable_memory().
LendingSender* lender_of(SendStream& stream, PeerGroupMember& member) {
  if (&member.lendable_memory() == std::pmr::get_default_resource()) return stream.lending();
  EXPECT_EQ(stream.lending(), nullptr) << "it cannot lend all memory";
  return dynamic_cast<PartialLender*>(&stream);
}

// One sender, all others receive.
struct Scene {
  explicit Scene(std::vector<std::unique_ptr<PeerGroupMember>> made) : members(std::move(made)) {
    std::vector<std::uint32_t> receivers;
    for (std::uint32_t member = 1; member < members.size(); ++member) receivers.push_back(member);
    const StreamAddress address{0, static_cast<std::uint8_t>(receivers.size() > 1 ? 1 : 0), 0};
    send = members[0]->peer_group().open_send(address, receivers, kGeometry).value();
    for (const std::uint32_t receiver : receivers)
      receive.push_back(members[receiver]->peer_group().open_receive(address, kGeometry).value());
    lender = lender_of(*send, *members[0]);
  }
  // Whether a receiver sees changes in the buffer of the sender.
  [[nodiscard]] bool is_in_place(const std::byte* message, std::uint64_t slice) const {
    bool follows = message != nullptr;
    for (const std::byte value : {std::byte{1}, std::byte{2}}) {
      memory[slice * 1024] = value;
      follows = follows && *message == value;
    }
    return follows;
  }
  // The first operations are in slots where receivers must map the memory first. Returns the number of the last one.
  std::uint64_t begin_in_slots() const {
    if (send->lending() != nullptr || lender == nullptr) return 0;
    for (std::uint64_t operation = 1; operation <= kInSlots; ++operation) {
      begin(operation);
      for (std::uint64_t slice = 0; slice < kGeometry.slices; ++slice) {
        const Mark mark = mark_of(operation, slice);
        EXPECT_FALSE(lender->lend(mark, memory.data(), 1024)) << "no receiver reads it yet";
        EXPECT_NE(send->acquire(mark), nullptr);
        send->commit(mark, kGeometry.slot_size);
        for (const auto& each : receive) {
          EXPECT_FALSE(is_in_place(each->front(mark), slice));
          EXPECT_TRUE(each->borrowing()->hold(mark));
          each->release(mark);
        }
      }
      EXPECT_TRUE(lender->taken(operation)) << "nothing was lent";
      EXPECT_TRUE(lender->revoke(operation));
      complete(operation);
    }
    return kInSlots;
  }
  void begin(std::uint64_t operation) const {
    for (const auto& member : members) member->peer_group().status().begin({operation, 0, 0, {}});
  }
  void complete(std::uint64_t operation) const {
    for (const auto& member : members) member->peer_group().complete(operation);
  }

  std::vector<std::unique_ptr<PeerGroupMember>> members;
  std::unique_ptr<SendStream> send;
  std::vector<std::unique_ptr<ReceiveStream>> receive;
  LendingSender* lender = nullptr;  // null: this stream lends nothing
  mutable std::pmr::vector<std::byte> memory{kAll, &members[0]->lendable_memory()};
};

TEST_P(Lending, MessagesAreReadInTheSendersBuffer) {
  const Scene scene(make({.members = 3}));
  if (scene.lender == nullptr) {
    for (const auto& receive : scene.receive) EXPECT_EQ(receive->borrowing(), nullptr);
    return;
  }
  const std::uint64_t before = scene.begin_in_slots();
  const std::size_t leased = scene.members[0]->leased();
  for (std::uint64_t operation = before + 1; operation <= before + 5; ++operation) {
    scene.begin(operation);
    for (std::uint64_t slice = 0; slice < kGeometry.slices; ++slice) {
      const Mark mark = mark_of(operation, slice);
      ASSERT_TRUE(scene.lender->lend(mark, scene.memory.data(), 1024));
      for (const auto& receive : scene.receive) EXPECT_EQ(receive->front(mark), nullptr) << "not committed yet";
      scene.send->commit(mark, kGeometry.slot_size);
    }
    EXPECT_FALSE(scene.lender->taken(operation));
    for (const auto& receive : scene.receive) {
      EXPECT_FALSE(scene.lender->taken(operation)) << "another receiver still reads";
      for (std::uint64_t slice = 0; slice < kGeometry.slices; ++slice) {
        const Mark mark = mark_of(operation, slice);
        EXPECT_TRUE(scene.is_in_place(receive->front(mark), slice));
        EXPECT_TRUE(receive->borrowing()->hold(mark));
        receive->release(mark);
      }
    }
    EXPECT_TRUE(scene.lender->taken(operation));
    scene.complete(operation);
  }
  for (const auto& member : scene.members) EXPECT_TRUE(member->peer_group().failure().ok());
  EXPECT_EQ(scene.members[0]->leased(), leased) << "no slots are needed";
}

TEST_P(Lending, ARevokedMessageIsReadByNoMember) {
  const Scene scene(make({.members = 3}));
  if (scene.lender == nullptr) return;
  const std::uint64_t operation = scene.begin_in_slots() + 1;
  const Mark mark = mark_of(operation, 0);
  scene.begin(operation);
  ASSERT_TRUE(scene.lender->lend(mark, scene.memory.data(), 1024));
  scene.send->commit(mark, kGeometry.slot_size);
  for (const auto& receive : scene.receive) ASSERT_NE(receive->front(mark), nullptr);
  ASSERT_TRUE(scene.receive[0]->borrowing()->hold(mark));
  EXPECT_FALSE(scene.lender->revoke(operation)) << "it is being read";
  EXPECT_FALSE(scene.receive[1]->borrowing()->hold(mark)) << "revoked after front() and before hold()";
  EXPECT_FALSE(scene.lender->revoke(operation));
  scene.receive[0]->release(mark);
  EXPECT_TRUE(scene.lender->revoke(operation));
  EXPECT_FALSE(scene.receive[0]->borrowing()->hold(mark));
  EXPECT_TRUE(scene.lender->revoke(operation)) << "a hold that failed holds nothing";
}

TEST_P(Lending, AReleasedHoldCanBeTakenAgain) {
  const Scene scene(make({.members = 2}));
  if (scene.lender == nullptr) return;
  const std::uint64_t operation = scene.begin_in_slots() + 1;
  const Mark mark = mark_of(operation, 0);
  scene.begin(operation);
  ASSERT_TRUE(scene.lender->lend(mark, scene.memory.data(), 1024));
  scene.send->commit(mark, kGeometry.slot_size);
  ASSERT_NE(scene.receive[0]->front(mark), nullptr);
  ASSERT_TRUE(scene.receive[0]->borrowing()->hold(mark));
  scene.receive[0]->borrowing()->let_go(mark);
  ASSERT_TRUE(scene.receive[0]->borrowing()->hold(mark));
  EXPECT_FALSE(scene.lender->revoke(operation));
}

TEST_P(Lending, LentMessagesAndSlotsShareAStream) {
  const Scene scene(make({.members = 2}));
  if (scene.lender == nullptr) return;
  const std::uint64_t before = scene.begin_in_slots();
  for (std::uint64_t operation = before + 1; operation <= before + 6; ++operation) {
    scene.begin(operation);
    for (std::uint64_t slice = 0; slice < kGeometry.slices; ++slice) {
      const Mark mark = mark_of(operation, slice);
      if (operation % 2 == 0) {
        ASSERT_TRUE(scene.lender->lend(mark, scene.memory.data(), 1024));
      } else {
        std::byte* const slot = scene.send->acquire(mark);
        ASSERT_NE(slot, nullptr);
        write_pattern(slot, kGeometry.slot_size, mark);
      }
      scene.send->commit(mark, kGeometry.slot_size);
      const std::byte* const message = scene.receive[0]->front(mark);
      ASSERT_NE(message, nullptr);
      EXPECT_EQ(operation % 2 == 0, scene.is_in_place(message, slice));
      EXPECT_TRUE(operation % 2 == 0 || has_pattern(message, kGeometry.slot_size, mark));
      EXPECT_TRUE(scene.receive[0]->borrowing()->hold(mark));
      scene.receive[0]->release(mark);
    }
    scene.complete(operation);
  }
  EXPECT_TRUE(scene.members[1]->peer_group().failure().ok());
}

using LendingByOffset = OneThread;

// The first slice of an operation, which the first of two receivers is reading.
struct Reading {
  explicit Reading(const Scene& scene) : operation(scene.begin_in_slots() + 1), mark(mark_of(operation, 0)) {
    scene.begin(operation);
    EXPECT_TRUE(scene.lender->lend(mark, scene.memory.data(), 1024));
    scene.send->commit(mark, kGeometry.slot_size);
    for (const auto& receive : scene.receive) EXPECT_NE(receive->front(mark), nullptr);
    EXPECT_TRUE(scene.receive[0]->borrowing()->hold(mark));
    EXPECT_FALSE(scene.lender->revoke(operation)) << "it is being read";
  }
  std::uint64_t operation;
  Mark mark;
};

TEST_P(LendingByOffset, AReaderWhoseProcessHasEndedIsNotWaitedFor) {
  const Scene scene(make({.members = 3}));
  const Reading reading(scene);
  scene.members[0]->suppose(2, Supposed::dead);
  EXPECT_FALSE(scene.lender->revoke(reading.operation)) << "another one has ended";
  scene.members[0]->suppose(1, Supposed::dead);
  EXPECT_TRUE(scene.lender->revoke(reading.operation));
  EXPECT_FALSE(scene.receive[1]->borrowing()->hold(reading.mark));
}

// The slice that it has read may have changed meanwhile, so its operation must not succeed.
TEST_P(LendingByOffset, AFrozenReaderIsNotWaitedForAndFailsWhenItGoesOn) {
  const Scene scene(make({.members = 3}));
  const Reading reading(scene);
  scene.members[0]->suppose(1, Supposed::frozen);
  EXPECT_TRUE(scene.lender->revoke(reading.operation));
  EXPECT_TRUE(scene.lender->revoke(reading.operation)) << "the answer changes no more";
  EXPECT_FALSE(scene.receive[1]->borrowing()->hold(reading.mark));
  EXPECT_FALSE(scene.members[1]->peer_group().suspects());
  scene.receive[0]->release(reading.mark);
  EXPECT_TRUE(scene.members[1]->peer_group().suspects());
  EXPECT_NE(scene.members[1]->peer_group().failure().text().find("stood still"), std::string::npos);
  EXPECT_FALSE(scene.receive[0]->borrowing()->hold(reading.mark));
  EXPECT_TRUE(scene.members[2]->peer_group().failure().ok());
}

// A reader that was waited for has read what was sent.
TEST_P(LendingByOffset, ARevocationAloneIsNoFailureOfTheReader) {
  const Scene scene(make({.members = 3}));
  const Reading reading(scene);
  scene.receive[0]->release(reading.mark);
  EXPECT_TRUE(scene.lender->revoke(reading.operation));
  EXPECT_TRUE(scene.members[1]->peer_group().failure().ok());
}

TEST_P(LendingByOffset, ADamagedHeaderIsAnErrorAndNotRead) {
  for (const Damage damage : kDamages)
    for (std::uint64_t random = 1; random < 40; random += 6) {
      const Scene scene(make({.members = 2}));
      const std::uint64_t operation = scene.begin_in_slots() + 1;
      const Mark mark = mark_of(operation, 0);
      scene.begin(operation);
      ASSERT_TRUE(scene.lender->lend(mark, scene.memory.data(), 1024));
      scene.send->commit(mark, kGeometry.slot_size);
      scene.members[0]->damage(DamagedStream{{0, 0, 0}, 1, operation, damage, random});
      EXPECT_EQ(scene.receive[0]->front(mark), nullptr);
      EXPECT_FALSE(scene.members[1]->peer_group().failure().ok()) << "damage " << static_cast<int>(damage) << ", " << random;
    }
}

// Messages of other memory are in slots.
TEST_P(LendingByOffset, OtherMemoryIsNotLent) {
  const Scene scene(make({.members = 2}));
  std::uint64_t operation = scene.begin_in_slots();
  const std::vector<std::byte> elsewhere(kAll);
  for (const std::byte* const first : {elsewhere.data(), static_cast<const std::byte*>(nullptr)}) {
    scene.begin(++operation);
    EXPECT_FALSE(scene.lender->lend(mark_of(operation, 0), first, 1024));
    for (std::uint64_t slice = 0; slice < kGeometry.slices; ++slice) {
      const Mark mark = mark_of(operation, slice);
      EXPECT_FALSE(scene.lender->lend(mark, slice == 0 ? first : scene.memory.data(), 1024)) << "a slot was acquired before";
      ASSERT_NE(scene.send->acquire(mark), nullptr);
      scene.send->commit(mark, kGeometry.slot_size);
      ASSERT_NE(scene.receive[0]->front(mark), nullptr);
      scene.receive[0]->release(mark);
    }
    scene.complete(operation);
  }
  scene.begin(++operation);
  EXPECT_TRUE(scene.lender->lend(mark_of(operation, 0), scene.memory.data(), 1024));
  EXPECT_EQ(scene.send->acquire(mark_of(operation, 0)), nullptr) << "it was lent";
}

INSTANTIATE_TEST_SUITE_P(All, LendingByOffset, ::testing::Values(&lending_by_offset()), name_of_one);

INSTANTIATE_TEST_SUITE_P(All, Lending, ::testing::ValuesIn(one_thread_transports()), name_of_one);
INSTANTIATE_TEST_SUITE_P(ByOffset, Lending, ::testing::Values(&lending_by_offset()), name_of_one);

// The owner overwrites its memory as soon as it may: a late reader reads wrong data, and a race detector reports it.
class LendingAtOnce : public EveryTransport {};

TEST_P(LendingAtOnce, MemoryReturnsToTheOwnerOnceAllWasRead) {
  const std::uint64_t operations = repetitions(1500, 300);
  run({}, [operations](PeerGroupMember& member) {
    std::vector<std::uint32_t> receivers;
    for (std::uint32_t other = 1; other < member.peer_group().members(); ++other) receivers.push_back(other);
    const StreamAddress address{0, static_cast<std::uint8_t>(receivers.size() > 1 ? 1 : 0), 0};
    PeerGroup& peer_group = member.peer_group();
    std::unique_ptr<SendStream> send;
    std::unique_ptr<ReceiveStream> receive;
    if (member.index() == 0) send = peer_group.open_send(address, receivers, kGeometry).value();
    if (member.index() != 0) receive = peer_group.open_receive(address, kGeometry).value();
    // Without shared memory only the sender takes part in lending.
    LendingSender* const lender = send == nullptr ? nullptr : lender_of(*send, member);
    if (!(send != nullptr ? lender != nullptr : receive->borrowing() != nullptr || !member.shares_memory())) return;
    std::pmr::vector<std::byte> memory(kAll, &member.lendable_memory());
    for (std::uint64_t operation = 1; operation <= operations; ++operation) {
      peer_group.status().begin({operation, 0, 0, {}});
      for (std::uint64_t slice = 0; slice < kGeometry.slices; ++slice) {
        const Mark mark = mark_of(operation, slice);
        if (send != nullptr) {
          write_pattern(memory.data() + slice * 1024, 1024, mark);
          // Where a receiver cannot read the memory yet, a slot is acquired in place of it.
          std::byte* slot = nullptr;
          ASSERT_TRUE(awaited(
              member,
              [&] {
                return lender->lend(mark, memory.data(), 1024) ||
                       (send->lending() == nullptr && (slot = send->acquire(mark)) != nullptr);
              },
              100));
          if (slot != nullptr) std::memcpy(slot, memory.data() + slice * 1024, 1024);
          send->commit(mark, kGeometry.slot_size);
          continue;
        }
        const std::byte* message = nullptr;
        ASSERT_TRUE(awaited(
            member, [&] { return (message = receive->front(mark)) != nullptr; }, 100));
        ASSERT_TRUE(receive->borrowing() == nullptr || receive->borrowing()->hold(mark));
        EXPECT_TRUE(has_pattern(message, 1024, mark)) << "operation " << operation << ", slice " << slice;
        receive->release(mark);
      }
      if (send != nullptr) {
        ASSERT_TRUE(awaited(
            member, [&] { return lender->taken(operation); }, 100));
        std::memset(memory.data(), 0xee, kAll);
      }
      peer_group.complete(operation);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, LendingAtOnce, every_transport({2, 4}), name_of_both);
INSTANTIATE_TEST_SUITE_P(ByOffset, LendingAtOnce,
                         ::testing::Combine(::testing::Values(&lending_by_offset(), &lending_by_offset_in_processes()),
                                            ::testing::Values(2U, 4U)),
                         name_of_both);

}  // namespace
}  // namespace seto::support
