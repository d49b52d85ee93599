// The three positions of a send stream: handed over, acknowledged, released.

#include "tests/support/conformance.h"
#include "tests/support/tcp_peer_groups.h"

namespace seto::support {
namespace {

constexpr StreamGeometry kGeometry{1000, 4, 4, 7};

class Positions : public OneThread {
 protected:
  void SetUp() override {
    members_ = make({.members = 2});
    const std::uint32_t receivers[] = {1};
    send_ = members_[0]->peer_group().open_send({0, 0, 0}, receivers, kGeometry).value();
    receive_ = members_[1]->peer_group().open_receive({0, 0, 0}, kGeometry).value();
  }

  void begin(std::uint64_t operation) {
    for (const auto& member : members_) member->peer_group().status().begin({operation, 0, 0, {}});
  }
  void send(Mark mark) {
    std::byte* slot = nullptr;
    ASSERT_TRUE(eventually([&] { return (slot = send_->acquire(mark)) != nullptr; }));
    write_pattern(slot, kGeometry.slot_size, mark);
    send_->commit(mark, kGeometry.slot_size);
  }
  void receive(Mark mark) {
    const std::byte* message = nullptr;
    ASSERT_TRUE(eventually([&] { return (message = receive_->front(mark)) != nullptr; }));
    EXPECT_TRUE(has_pattern(message, kGeometry.slot_size, mark));
    receive_->release(mark);
  }
  void expect_ordered(std::uint64_t operation) {
    // In this order: a position may grow between two calls.
    const std::uint64_t released = send_->released(operation);
    const std::uint64_t acknowledged = send_->acknowledged(operation);
    EXPECT_LE(released, acknowledged);
    EXPECT_LE(acknowledged, send_->handed_over(operation));
  }

  std::vector<std::unique_ptr<PeerGroupMember>> members_;
  std::unique_ptr<SendStream> send_;
  std::unique_ptr<ReceiveStream> receive_;
};

TEST_P(Positions, FollowAnOperationFromCommitToCompletion) {
  for (std::uint64_t operation = 1; operation <= 5; ++operation) {
    begin(operation);
    EXPECT_EQ(send_->handed_over(operation), 0U) << "nothing was committed";
    for (std::uint64_t slice = 0; slice < kGeometry.slices; ++slice) {
      send(mark_of(operation, slice));
      EXPECT_TRUE(eventually([&] { return send_->handed_over(operation) == slice + 1; }));
      EXPECT_EQ(send_->released(operation), 0U) << "the receiver has released nothing";
      expect_ordered(operation);
    }
    for (std::uint64_t slice = 0; slice < kGeometry.slices; ++slice) {
      receive(mark_of(operation, slice));
      EXPECT_LE(send_->released(operation), slice + 1);
      expect_ordered(operation);
    }
    members_[1]->peer_group().complete(operation);
    EXPECT_TRUE(eventually([&] {
      (void)send_->acquire(mark_of(operation + 1, 0));  // asks the receiver to report its progress
      (void)members_[0]->peer_group().status().completed_by(1);
      return send_->released(operation) == kGeometry.slices;
    }));
    EXPECT_EQ(send_->acknowledged(operation), kGeometry.slices);
    EXPECT_EQ(send_->handed_over(operation), kGeometry.slices);
    members_[0]->peer_group().complete(operation);
  }
}

TEST_P(Positions, OfTwoOperationsInFlightAreIndependent) {
  begin(1);
  begin(2);
  send(mark_of(2, 0));
  send(mark_of(2, 1));
  EXPECT_TRUE(eventually([&] { return send_->handed_over(2) == 2; }));
  EXPECT_EQ(send_->handed_over(1), 0U);
  send(mark_of(1, 0));
  EXPECT_TRUE(eventually([&] { return send_->handed_over(1) == 1; }));
  EXPECT_EQ(send_->handed_over(2), 2U);
}

// Credit comes from the receiver: a stream of many slices stops until the receiver releases some, and the position shows it.
TEST_P(Positions, GrowWithTheReceiversCredit) {
  constexpr std::uint64_t kSlices = 1'000;
  constexpr StreamGeometry kMany{500, 2, kSlices, 8};
  const std::uint32_t receivers[] = {1};
  const auto send = members_[0]->peer_group().open_send({0, 0, 1}, receivers, kMany).value();
  const auto receive = members_[1]->peer_group().open_receive({0, 0, 1}, kMany).value();
  begin(1);
  std::uint64_t sent = 0, received = 0;
  const auto fill = [&] {
    for (int looks = 0; looks < 100 && sent < kSlices; ++looks) {
      const Mark mark = mark_of(1, sent);
      if (send->acquire(mark) == nullptr) continue;
      send->commit(mark, kMany.slot_size);
      ++sent;
    }
  };
  for (int turns = 0; turns < 10; ++turns) fill();
  EXPECT_GE(sent, kMany.depth);
  EXPECT_LT(sent, kSlices) << "no credit is left before the receiver releases anything";
  EXPECT_TRUE(eventually([&] {
    if (received < sent && receive->front(mark_of(1, received)) != nullptr) receive->release(mark_of(1, received++));
    fill();
    EXPECT_LE(send->released(1), received);
    return received == kSlices;
  }));
  EXPECT_GT(send->released(1), 0U);
}

std::vector<const PeerGroupTransport*> in_one_thread() {
  std::vector<const PeerGroupTransport*> all = one_thread_transports();
  all.push_back(&tcp_transport(1));
  all.push_back(&tcp_transport(3));
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Positions, ::testing::ValuesIn(in_one_thread()), name_of_one);

}  // namespace
}  // namespace seto::support
