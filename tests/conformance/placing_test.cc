// Messages received directly at their destination: which ones are, which are not, and until when the destination is written.

#include <algorithm>
#include <cstring>

#include "tests/support/conformance.h"
#include "tests/support/tcp_peer_groups.h"

namespace seto::support {
namespace {

constexpr std::size_t kSlice = std::size_t{512} << 10;  // two frames
constexpr StreamGeometry kGeometry{kSlice, 2, 4, 5};
constexpr std::size_t kAll = 3 * kSlice + 1000;

class Placing : public OneThread {
 protected:
  void SetUp() override {
    members_ = make({});
    send_ = members_[0]->peer_group().open_send({0, 0, 0}, receivers_, kGeometry).value();
    receive_ = members_[1]->peer_group().open_receive({0, 0, 0}, kGeometry).value();
    ASSERT_TRUE(receive_->placing() != nullptr);
    begin(1);
  }

  void begin(std::uint64_t operation) const {
    for (const auto& member : members_) member->peer_group().status().begin({operation, 0, 0, {}});
  }
  [[nodiscard]] Placement placement(std::uint64_t until) { return {1, wanted_.data(), kSlice, kAll, until}; }
  // Sends until the sockets accept no more.
  void send(std::uint64_t slice, std::size_t size = kSlice) const {
    const Mark mark = mark_of(1, slice);
    std::byte* memory = send_->acquire(mark);
    while (memory == nullptr) memory = turn(mark);
    std::memset(memory, static_cast<int>(slice) + 1, size);
    send_->commit(mark, size);
  }
  const std::byte* receive(std::uint64_t slice) const {
    const Mark mark = mark_of(1, slice);
    const std::byte* message = nullptr;
    (void)eventually([&] {
      (void)send_->lending()->taken(1);  // makes progress
      return (message = receive_->front(mark)) != nullptr;
    });
    return message;
  }
  [[nodiscard]] bool untouched(std::size_t from = 0) const {
    return wanted_[from] == std::byte{0xee} && std::memcmp(&wanted_[from], &wanted_[from + 1], wanted_.size() - from - 1) == 0;
  }

  std::vector<std::byte> wanted_ = std::vector<std::byte>(kAll, std::byte{0xee});
  std::vector<std::unique_ptr<PeerGroupMember>> members_;
  std::unique_ptr<SendStream> send_;
  std::unique_ptr<ReceiveStream> receive_;

 private:
  std::byte* turn(Mark mark) const {
    (void)receive_->front(mark);
    return send_->acquire(mark);
  }

  const std::vector<std::uint32_t> receivers_ = {1};
};

TEST_P(Placing, AMessageArrivesAtItsDestination) {
  receive_->placing()->place(placement(4));
  for (std::uint64_t slice = 0; slice < 4; ++slice) {
    const std::size_t size = std::min(kSlice, kAll - slice * kSlice);
    send(slice, size);
    EXPECT_EQ(receive(slice), wanted_.data() + slice * kSlice);
    EXPECT_TRUE(receive_->sized()->has_size(mark_of(1, slice), size));
    EXPECT_EQ(wanted_[slice * kSlice + size - 1], static_cast<std::byte>(slice + 1));
    receive_->release(mark_of(1, slice));
  }
  EXPECT_EQ(members_[1]->leased(), 0U) << "no buffer of the transport is needed";
}

TEST_P(Placing, AnUnexpectedMessageIsBuffered) {
  receive_->placing()->place(placement(1));
  send(0);
  ASSERT_NE(receive(0), nullptr);
  send(1);
  const std::byte* const second = receive(1);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second[0], std::byte{2});
  EXPECT_TRUE(untouched(kSlice));
  receive_->placing()->place(placement(4));
  EXPECT_EQ(receive(1), second) << "the same address until the release";
  send(2);
  EXPECT_EQ(receive(2), wanted_.data() + 2 * kSlice);
}

TEST_P(Placing, AMessageOfAnotherLengthIsBuffered) {
  receive_->placing()->place(placement(4));
  send(0, kSlice - 8);
  const std::byte* const message = receive(0);
  ASSERT_NE(message, nullptr);
  EXPECT_TRUE(untouched());
  EXPECT_FALSE(receive_->sized()->has_size(mark_of(1, 0), kSlice));
}

TEST_P(Placing, AMessageOfAnotherShapeIsBuffered) {
  StreamGeometry other = kGeometry;
  other.digest = 6;
  const std::uint32_t receivers[] = {1};
  send_ = members_[0]->peer_group().open_send({0, 0, 0}, receivers, other).value();
  receive_->placing()->place(placement(4));
  send(0);
  EXPECT_TRUE(eventually([&] {
    (void)receive_->front(mark_of(1, 0));
    return members_[1]->peer_group().suspects();
  }));
  EXPECT_TRUE(untouched());
}

TEST_P(Placing, NothingIsWrittenAfterTheDestinationIsWithdrawn) {
  receive_->placing()->place(placement(4));
  send(0);
  send(1);
  send(2);  // more than one call reads from a socket: some bytes are in flight
  while (untouched()) (void)receive_->front(mark_of(1, 0));
  EXPECT_EQ(wanted_[3 * kSlice - 1], std::byte{0xee}) << "some bytes have not arrived";
  receive_->placing()->displace(1);
  std::fill(wanted_.begin(), wanted_.end(), std::byte{0xee});
  send(3, kAll - 3 * kSlice);
  // Complete messages that arrive later are read as usual.
  const std::byte* const last = receive(3);
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(last[0], std::byte{4});
  EXPECT_TRUE(untouched());
  members_[1]->peer_group().disregard(1);
  for (const auto& member : members_) member->peer_group().complete(1);
  begin(2);
  const Mark mark = mark_of(2, 0);
  std::byte* memory = nullptr;
  ASSERT_TRUE(eventually([&] { return (memory = send_->acquire(mark)) != nullptr; }));
  std::memset(memory, 9, kSlice);
  send_->commit(mark, kSlice);
  const std::byte* message = nullptr;
  ASSERT_TRUE(eventually([&] { return (message = receive_->front(mark)) != nullptr; }));
  EXPECT_EQ(message[kSlice - 1], std::byte{9});
  EXPECT_TRUE(untouched());
}

// A revoked message arrives intact, or never becomes complete.
TEST_P(Placing, ARevokedMessageArrivesIntactOrNever) {
  constexpr std::size_t kLong = std::size_t{12} << 20;  // two fill more than the kernel buffers of three sockets
  constexpr std::uint64_t kSlices = 2;
  constexpr StreamGeometry kLent{kLong, 2, kSlices, 5};
  const std::uint32_t receivers[] = {1};
  send_ = members_[0]->peer_group().open_send({0, 0, 1}, receivers, kLent).value();
  receive_ = members_[1]->peer_group().open_receive({0, 0, 1}, kLent).value();
  std::vector<std::byte> memory(kSlices * kLong, std::byte{7});
  for (std::uint64_t slice = 0; slice < kSlices; ++slice) {
    ASSERT_TRUE(send_->lending()->lend(mark_of(1, slice), memory.data(), kLong));
    send_->commit(mark_of(1, slice), kLong);
  }
  ASSERT_FALSE(send_->lending()->taken(1)) << "the sockets accepted everything: nothing is left to revoke";
  EXPECT_TRUE(send_->lending()->revoke(1));
  EXPECT_TRUE(send_->lending()->taken(1));
  std::fill(memory.begin(), memory.end(), std::byte{0xdd});
  members_[0]->peer_group().complete(1);
  members_[0]->peer_group().status().begin({2, 0, 0, {}});
  std::byte* next = send_->acquire(mark_of(2, 0));
  ASSERT_NE(next, nullptr);
  std::memset(next, 8, kLong);
  send_->commit(mark_of(2, 0), kLong);
  const std::byte* after = nullptr;
  ASSERT_TRUE(eventually([&] {
    (void)send_->lending()->taken(1);  // makes progress
    return (after = receive_->front(mark_of(2, 0))) != nullptr;
  })) << "data that was sent later must arrive";
  EXPECT_EQ(after[kLong - 1], std::byte{8});
  std::uint64_t whole = 0;
  for (std::uint64_t slice = 0; slice < kSlices; ++slice) {
    const std::byte* const message = receive_->front(mark_of(1, slice));
    if (message == nullptr) continue;
    ++whole;
    EXPECT_EQ(std::count(message, message + kLong, std::byte{7}), static_cast<std::ptrdiff_t>(kLong)) << "slice " << slice;
  }
  EXPECT_LT(whole, kSlices);
}

TEST_P(Placing, APartThatArrivesTwiceIsMalformed) {
  // Two streams with the same address send the same message twice.
  receive_->placing()->place(placement(4));
  send(0);
  ASSERT_NE(receive(0), nullptr);
  const std::uint32_t receivers[] = {1};
  const auto again = members_[0]->peer_group().open_send({0, 0, 0}, receivers, kGeometry).value();
  std::byte* const memory = again->acquire(mark_of(1, 0));
  ASSERT_NE(memory, nullptr);
  std::memset(memory, 0x55, kSlice);
  again->commit(mark_of(1, 0), kSlice);
  for (int looks = 0; looks < 1000; ++looks) (void)receive_->front(mark_of(1, 1));
  EXPECT_EQ(std::count(wanted_.begin(), wanted_.begin() + kSlice, std::byte{1}), static_cast<std::ptrdiff_t>(kSlice));
}

INSTANTIATE_TEST_SUITE_P(All, Placing,
                         ::testing::Values(&tcp_transport(1), &tcp_transport(3), &tls_transport(1), &cut_transport(false)),
                         name_of_one);

}  // namespace
}  // namespace seto::support
