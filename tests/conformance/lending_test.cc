// Lent messages: which members may read them, until when, and how they are revoked.

#include <cstring>

#include "tests/support/conformance.h"

namespace seto::support {
namespace {

constexpr StreamGeometry kGeometry{1024, 2, 4, 5};
constexpr std::size_t kAll = std::size_t{1024} * 4;

using Lending = OneThread;

// One sender, all others receive.
struct Scene {
  explicit Scene(std::vector<std::unique_ptr<PeerGroupMember>> made) : members(std::move(made)) {
    std::vector<std::uint32_t> receivers;
    for (std::uint32_t member = 1; member < members.size(); ++member) receivers.push_back(member);
    const StreamAddress address{0, static_cast<std::uint8_t>(receivers.size() > 1 ? 1 : 0), 0};
    send = members[0]->peer_group().open_send(address, receivers, kGeometry).value();
    for (const std::uint32_t receiver : receivers)
      receive.push_back(members[receiver]->peer_group().open_receive(address, kGeometry).value());
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
  std::vector<std::byte> memory = std::vector<std::byte>(kAll);
};

TEST_P(Lending, MessagesAreReadInTheSendersBuffer) {
  const Scene scene(make({.members = 3}));
  if (scene.send->lending() == nullptr) {
    for (const auto& receive : scene.receive) EXPECT_EQ(receive->borrowing(), nullptr);
    return;
  }
  for (std::uint64_t operation = 1; operation <= 5; ++operation) {
    scene.begin(operation);
    for (std::uint64_t slice = 0; slice < kGeometry.slices; ++slice) {
      const Mark mark = mark_of(operation, slice);
      ASSERT_TRUE(scene.send->lending()->lend(mark, scene.memory.data(), 1024));
      for (const auto& receive : scene.receive) EXPECT_EQ(receive->front(mark), nullptr) << "not committed yet";
      scene.send->commit(mark, kGeometry.slot_size);
    }
    EXPECT_FALSE(scene.send->lending()->taken(operation));
    for (const auto& receive : scene.receive) {
      EXPECT_FALSE(scene.send->lending()->taken(operation)) << "another receiver still reads";
      for (std::uint64_t slice = 0; slice < kGeometry.slices; ++slice) {
        const Mark mark = mark_of(operation, slice);
        EXPECT_EQ(receive->front(mark), scene.memory.data() + slice * 1024);
        EXPECT_TRUE(receive->borrowing()->hold(mark));
        receive->release(mark);
      }
    }
    EXPECT_TRUE(scene.send->lending()->taken(operation));
    scene.complete(operation);
  }
  for (const auto& member : scene.members) {
    EXPECT_TRUE(member->peer_group().failure().ok());
    EXPECT_EQ(member->leased(), 0U) << "no slots are needed";
  }
}

TEST_P(Lending, ARevokedMessageIsReadByNoMember) {
  const Scene scene(make({.members = 3}));
  if (scene.send->lending() == nullptr) return;
  const Mark mark = mark_of(1, 0);
  scene.begin(1);
  ASSERT_TRUE(scene.send->lending()->lend(mark, scene.memory.data(), 1024));
  scene.send->commit(mark, kGeometry.slot_size);
  for (const auto& receive : scene.receive) ASSERT_NE(receive->front(mark), nullptr);
  ASSERT_TRUE(scene.receive[0]->borrowing()->hold(mark));
  EXPECT_FALSE(scene.send->lending()->revoke(1)) << "it is being read";
  EXPECT_FALSE(scene.receive[1]->borrowing()->hold(mark)) << "revoked after front() and before hold()";
  EXPECT_FALSE(scene.send->lending()->revoke(1));
  scene.receive[0]->release(mark);
  EXPECT_TRUE(scene.send->lending()->revoke(1));
  EXPECT_FALSE(scene.receive[0]->borrowing()->hold(mark));
  EXPECT_TRUE(scene.send->lending()->revoke(1)) << "a hold that failed holds nothing";
}

TEST_P(Lending, AReleasedHoldCanBeTakenAgain) {
  const Scene scene(make({.members = 2}));
  if (scene.send->lending() == nullptr) return;
  const Mark mark = mark_of(1, 0);
  scene.begin(1);
  ASSERT_TRUE(scene.send->lending()->lend(mark, scene.memory.data(), 1024));
  scene.send->commit(mark, kGeometry.slot_size);
  ASSERT_NE(scene.receive[0]->front(mark), nullptr);
  ASSERT_TRUE(scene.receive[0]->borrowing()->hold(mark));
  scene.receive[0]->borrowing()->let_go(mark);
  ASSERT_TRUE(scene.receive[0]->borrowing()->hold(mark));
  EXPECT_FALSE(scene.send->lending()->revoke(1));
}

TEST_P(Lending, LentMessagesAndSlotsShareAStream) {
  const Scene scene(make({.members = 2}));
  if (scene.send->lending() == nullptr) return;
  for (std::uint64_t operation = 1; operation <= 6; ++operation) {
    scene.begin(operation);
    for (std::uint64_t slice = 0; slice < kGeometry.slices; ++slice) {
      const Mark mark = mark_of(operation, slice);
      if (operation % 2 == 0) {
        ASSERT_TRUE(scene.send->lending()->lend(mark, scene.memory.data(), 1024));
      } else {
        std::byte* const slot = scene.send->acquire(mark);
        ASSERT_NE(slot, nullptr);
        write_pattern(slot, kGeometry.slot_size, mark);
      }
      scene.send->commit(mark, kGeometry.slot_size);
      const std::byte* const message = scene.receive[0]->front(mark);
      ASSERT_NE(message, nullptr);
      EXPECT_EQ(operation % 2 == 0, message == scene.memory.data() + slice * 1024);
      EXPECT_TRUE(operation % 2 == 0 || has_pattern(message, kGeometry.slot_size, mark));
      EXPECT_TRUE(scene.receive[0]->borrowing()->hold(mark));
      scene.receive[0]->release(mark);
    }
    scene.complete(operation);
  }
  EXPECT_TRUE(scene.members[1]->peer_group().failure().ok());
}

INSTANTIATE_TEST_SUITE_P(All, Lending, ::testing::ValuesIn(one_thread_transports()), name_of_one);

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
    if (!(send != nullptr ? send->lending() != nullptr : receive->borrowing() != nullptr || !member.shares_memory())) return;
    std::vector<std::byte> memory(kAll);
    for (std::uint64_t operation = 1; operation <= operations; ++operation) {
      peer_group.status().begin({operation, 0, 0, {}});
      for (std::uint64_t slice = 0; slice < kGeometry.slices; ++slice) {
        const Mark mark = mark_of(operation, slice);
        if (send != nullptr) {
          write_pattern(memory.data() + slice * 1024, 1024, mark);
          ASSERT_TRUE(awaited(
              member, [&] { return send->lending()->lend(mark, memory.data(), 1024); }, 100));
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
            member, [&] { return send->lending()->taken(operation); }, 100));
        std::memset(memory.data(), 0xee, kAll);
      }
      peer_group.complete(operation);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, LendingAtOnce, every_transport({2, 4}), name_of_both);

}  // namespace
}  // namespace seto::support
