#include "src/engine/transfer_launch.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace seto {
namespace {

using Direction = LocalTransfer::Direction;

constexpr std::size_t kPiece = 4;

// Messages to one peer, as a transport that has room for `room` pieces.
class ScriptedSender final : public PairSender {
 public:
  int room = 1'000;
  bool refuses = false;
  std::uint64_t message = 1;
  std::string sent;

  [[nodiscard]] std::uint64_t current() const override { return message; }
  PairPiece acquire(const MessageHeader& header) override {
    if (refuses) {
      ++message;
      return {PairPiece::State::refused, nullptr, 0};
    }
    if (room == 0) return {};
    size_ = header.size;
    return {PairPiece::State::ready, buffer_.data(), piece()};
  }
  bool commit() override {
    --room;
    sent.append(reinterpret_cast<const char*>(buffer_.data()), piece());
    done_ += piece();
    if (done_ < size_) return false;
    sent += '|';
    ++message;
    done_ = 0;
    return true;
  }
  [[nodiscard]] MessageHeader other_end() const override { return {99, 1, 0}; }

 private:
  [[nodiscard]] std::size_t piece() const { return std::min<std::size_t>(kPiece, size_ - done_); }

  std::array<std::byte, kPiece> buffer_;
  std::size_t size_ = 0;
  std::size_t done_ = 0;
};

// Messages from one peer, of which `there` bytes have arrived.
class ScriptedReceiver final : public PairReceiver {
 public:
  std::string there;
  bool refuses = false;
  std::uint64_t message = 1;

  [[nodiscard]] std::uint64_t current() const override { return message; }
  PairPiece front(const MessageHeader& header) override {
    if (refuses) {
      ++message;
      return {PairPiece::State::refused, nullptr, 0};
    }
    size_ = header.size;
    if (there.size() < piece()) return {};
    return {PairPiece::State::ready, reinterpret_cast<std::byte*>(there.data()), piece()};
  }
  bool release() override {
    const std::size_t taken = piece();
    there.erase(0, taken);
    done_ += taken;
    if (done_ < size_) return false;
    ++message;
    done_ = 0;
    return true;
  }
  [[nodiscard]] MessageHeader other_end() const override { return {98, 1, 0}; }
  [[nodiscard]] bool has_pending() const override { return false; }
  [[nodiscard]] MessageHeader pending_header() const override { return {}; }

 private:
  [[nodiscard]] std::size_t piece() const { return std::min<std::size_t>(kPiece, size_ - done_); }

  std::size_t size_ = 0;
  std::size_t done_ = 0;
};

// Rank 0 of three.
class Launch : public ::testing::Test {
 protected:
  void send(Rank peer, std::uint64_t message, const std::string& text) {
    BoundTransfer bound;
    bound.source = reinterpret_cast<const std::byte*>(text.data());
    bound.header = {text.size(), 5, 0};
    bound.message = message;
    bound.sender = peer == 0 ? nullptr : &senders_[static_cast<std::size_t>(peer)];
    bound_.push_back(bound);
    transfers_.push_back({Direction::send, peer});
  }
  void receive(Rank peer, std::uint64_t message, std::string& text) {
    BoundTransfer bound;
    bound.target = reinterpret_cast<std::byte*>(text.data());
    bound.header = {text.size(), 5, 0};
    bound.message = message;
    bound.receiver = peer == 0 ? nullptr : &receivers_[static_cast<std::size_t>(peer)];
    bound_.push_back(bound);
    transfers_.push_back({Direction::receive, peer});
  }
  TransferLaunch launch() {
    auto program = local_program(0, 3, transfers_, 0);
    EXPECT_TRUE(program.ok()) << program.status().text();
    return {std::make_shared<const LocalProgram>(std::move(program).value()), bound_};
  }

  std::array<ScriptedSender, 3> senders_;
  std::array<ScriptedReceiver, 3> receivers_;
  std::vector<BoundTransfer> bound_;
  std::vector<LocalTransfer> transfers_;
};

constexpr std::uint32_t kMany = 1'000;

TEST_F(Launch, MovesMessagesPieceByPiece) {
  const std::string out = "0123456789";
  std::string in(6, ' ');
  send(1, 1, out);
  receive(2, 1, in);
  receivers_[2].there = "abcdef";
  TransferLaunch launched = launch();
  EXPECT_TRUE(launched.advance(kMany));
  EXPECT_EQ(senders_[1].sent, "0123456789|");
  EXPECT_EQ(in, "abcdef");
  EXPECT_EQ(launched.moved(), 5U) << "three pieces and two";
  EXPECT_TRUE(launched.waiting().empty());
}

TEST_F(Launch, AnEmptyMessageHasOnePiece) {
  const std::string out;
  std::string in;
  send(1, 1, out);
  receive(1, 1, in);
  TransferLaunch launched = launch();
  EXPECT_TRUE(launched.advance(kMany));
  EXPECT_EQ(senders_[1].sent, "|");
  EXPECT_EQ(receivers_[1].message, 2U);
}

// Other tasks of the context get their turn.
TEST_F(Launch, MovesAtMostSoManyPieces) {
  const std::string out(5 * kPiece, 'x');
  send(1, 1, out);
  TransferLaunch launched = launch();
  EXPECT_FALSE(launched.advance(2));
  EXPECT_EQ(senders_[1].sent.size(), 2 * kPiece);
  EXPECT_FALSE(launched.advance(0));
  EXPECT_EQ(launched.moved(), 2U);
  EXPECT_TRUE(launched.advance(3));
}

TEST_F(Launch, ContinuesWhereALaneWaited) {
  const std::string out = "0123456789";
  send(1, 1, out);
  senders_[1].room = 1;
  TransferLaunch launched = launch();
  EXPECT_FALSE(launched.advance(kMany));
  EXPECT_EQ(senders_[1].sent, "0123");
  EXPECT_EQ(launched.waiting(), std::vector<std::uint32_t>{0});
  const std::uint64_t moved = launched.moved();
  EXPECT_FALSE(launched.advance(kMany));
  EXPECT_EQ(launched.moved(), moved) << "nothing has moved";
  senders_[1].room = 2;
  EXPECT_TRUE(launched.advance(kMany));
  EXPECT_EQ(senders_[1].sent, "0123456789|");
}

// A peer that does not read holds up the messages to itself, and no others.
TEST_F(Launch, LanesDoNotWaitForEachOther) {
  const std::string out = "0123";
  std::string in(4, ' ');
  send(1, 1, out);
  send(2, 1, out);
  receive(1, 1, in);
  senders_[1].room = 0;
  receivers_[1].there = "abcd";
  TransferLaunch launched = launch();
  EXPECT_FALSE(launched.advance(kMany));
  EXPECT_EQ(senders_[2].sent, "0123|");
  EXPECT_EQ(in, "abcd");
  EXPECT_EQ(launched.waiting(), std::vector<std::uint32_t>{0});
}

TEST_F(Launch, MessagesToOnePeerGoInOrder) {
  const std::string first = "first", second = "second";
  send(1, 1, first);
  send(1, 2, second);
  TransferLaunch launched = launch();
  EXPECT_TRUE(launched.advance(kMany));
  EXPECT_EQ(senders_[1].sent, "first|second|");
}

// Messages of one pair are numbered, and another launch may have taken the earlier number.
TEST_F(Launch, WaitsForTheEarlierMessagesOfItsPairs) {
  const std::string out = "0123";
  std::string in(4, ' ');
  send(1, 2, out);
  receive(2, 2, in);
  receivers_[2].there = "abcd";
  TransferLaunch launched = launch();
  EXPECT_FALSE(launched.advance(kMany));
  EXPECT_FALSE(launched.reached());
  EXPECT_EQ(senders_[1].sent, "");
  EXPECT_EQ(in, "    ");
  EXPECT_EQ(launched.waiting().size(), 2U);
  receivers_[2].message = 2;
  EXPECT_FALSE(launched.advance(kMany));
  EXPECT_TRUE(launched.reached()) << "one of them is next";
  EXPECT_EQ(in, "abcd");
  senders_[1].message = 2;
  EXPECT_TRUE(launched.advance(kMany));
  EXPECT_EQ(senders_[1].sent, "0123|");
}

TEST_F(Launch, AMessageWithoutRoomHasReachedItsTurn) {
  const std::string out = "0123";
  send(1, 1, out);
  senders_[1].room = 0;
  TransferLaunch launched = launch();
  EXPECT_FALSE(launched.advance(kMany));
  EXPECT_TRUE(launched.reached());
}

TEST_F(Launch, ACopyWithinTheRankIsNoMessageThatWasReached) {
  const std::string out = "0123";
  std::string in(4, ' ');
  send(0, 0, out);
  receive(0, 0, in);
  send(1, 2, out);
  TransferLaunch launched = launch();
  EXPECT_FALSE(launched.advance(kMany));
  EXPECT_EQ(in, "0123");
  EXPECT_FALSE(launched.reached());
}

TEST_F(Launch, ARefusedMessageEndsAndTheOthersContinue) {
  const std::string out = "0123";
  std::string in(4, ' ');
  send(1, 1, out);
  receive(1, 1, in);
  send(2, 1, out);
  senders_[1].refuses = true;
  receivers_[1].refuses = true;
  TransferLaunch launched = launch();
  EXPECT_TRUE(launched.advance(kMany));
  EXPECT_EQ(senders_[2].sent, "0123|");
  EXPECT_EQ(in, "    ");
  ASSERT_EQ(launched.refused().size(), 2U);
  for (const TransferLaunch::Refused& refused : launched.refused()) {
    ASSERT_LT(refused.transfer, 2U);
    EXPECT_EQ(refused.theirs.size, refused.transfer == 0 ? 99U : 98U) << "what the other end expected, or stated";
  }
}

}  // namespace
}  // namespace seto
