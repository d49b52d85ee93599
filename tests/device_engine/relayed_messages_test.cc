// The relay between slots of kernels and the messages of a pair of ranks, with streams whose pieces fit no slot.
#include "src/engine/relay/relayed_messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <string>

#include "src/engine/relay/relay_channels.h"

namespace seto {
namespace {

using Direction = LocalTransfer::Direction;
using Random = std::mt19937_64;

struct Message {
  std::uint64_t label = 0;
  std::vector<std::byte> bytes;
};

// Messages on their way from a sender to a receiver. A piece is there or is not, at random.
struct Wire {
  struct Entry {
    MessageHeader header;
    std::vector<std::byte> bytes;
  };
  explicit Wire(std::uint64_t seed) : random(seed), piece(100 + random() % 40'000) {}
  bool waits() { return random() % 4 == 0; }

  Random random;
  std::size_t piece;
  std::deque<Entry> entries;
  bool refuses = false;
};

class WireSender final : public PairSender {
 public:
  explicit WireSender(Wire& wire) : wire_(wire) {}
  [[nodiscard]] std::uint64_t current() const override { return 1; }
  PairPiece acquire(const MessageHeader& header) override {
    if (wire_.refuses) return {PairPiece::State::refused, nullptr, 0};
    if (wire_.waits()) return {};
    header_ = header;
    piece_.resize(std::min<std::size_t>(wire_.piece, header.size - done_));
    return {PairPiece::State::ready, piece_.data(), piece_.size()};
  }
  bool commit() override {
    if (done_ == 0) wire_.entries.push_back({header_, {}});
    std::vector<std::byte>& bytes = wire_.entries.back().bytes;
    bytes.insert(bytes.end(), piece_.begin(), piece_.end());
    done_ += piece_.size();
    const bool is_last = done_ == header_.size;
    if (is_last) done_ = 0;
    return is_last;
  }
  [[nodiscard]] MessageHeader other_end() const override { return {}; }

 private:
  Wire& wire_;
  MessageHeader header_;
  std::vector<std::byte> piece_;
  std::size_t done_ = 0;
};

class WireReceiver final : public PairReceiver {
 public:
  explicit WireReceiver(Wire& wire) : wire_(wire) {}
  [[nodiscard]] std::uint64_t current() const override { return 1; }
  PairPiece front(const MessageHeader& header) override {
    if (wire_.entries.empty() || wire_.waits()) return {};
    Wire::Entry& entry = wire_.entries.front();
    EXPECT_EQ(entry.header, header);
    const std::size_t size = std::min(wire_.piece, entry.bytes.size() - done_);
    if (size == 0 && entry.header.size > 0) return {};
    is_open_ = true;
    piece_ = size;
    return {PairPiece::State::ready, entry.bytes.data() + done_, size};
  }
  bool release() override {
    done_ += piece_;
    if (done_ < wire_.entries.front().header.size) return false;
    wire_.entries.pop_front();
    done_ = 0;
    is_open_ = false;
    return true;
  }
  [[nodiscard]] MessageHeader other_end() const override { return {}; }
  [[nodiscard]] bool has_pending() const override { return !is_open_ && !wire_.entries.empty(); }
  [[nodiscard]] MessageHeader pending_header() const override { return wire_.entries.front().header; }

 private:
  Wire& wire_;
  std::size_t done_ = 0, piece_ = 0;
  bool is_open_ = false;
};

// The lanes of a kernel: each moves its slices of the messages in their order, whenever it can.
class KernelEnd {
 public:
  KernelEnd(const TransferArea& area, std::byte* staging, std::size_t rank, LocalTransfer pair, std::vector<Message> messages)
      : area_(area), staging_(staging), rank_(rank), pair_(pair), messages_(std::move(messages)), lanes_(area.channels()) {
    for (std::uint32_t channel = 0; channel < area.channels(); ++channel) lanes_[channel].slice = channel;
  }
  [[nodiscard]] const std::vector<Message>& messages() const { return messages_; }

  void turn(std::uint32_t channel) {
    Lane& lane = lanes_[channel];
    const std::uint64_t content = area_.slot_content();
    for (; !is_done(lane); ++lane.message, lane.slice = channel)
      if (lane.slice < std::max<std::uint64_t>(1, (messages_[lane.message].bytes.size() + content - 1) / content)) break;
    if (is_done(lane)) return;
    const TransferArea::StagedChannel at = area_.staged(rank_, pair_, channel);
    const bool sends = pair_.direction == Direction::send;
    if (sends ? lane.count - load_flag(staging_, at.read) >= area_.depth() : load_flag(staging_, at.posted) == lane.count) return;
    std::byte* const slot = staging_ + at.slots + lane.count % area_.depth() * (content + kernels::kSliceHeaderSize);
    Message& message = messages_[lane.message];
    const std::size_t begin = lane.slice * content;
    const std::size_t size = std::min<std::size_t>(content, message.bytes.size() - begin);
    kernels::SliceHeader header{message.bytes.size(), message.label};
    if (sends) {
      std::memcpy(slot, &header, sizeof header);
      std::copy_n(message.bytes.data() + begin, size, slot + kernels::kSliceHeaderSize);
    } else {
      std::memcpy(&header, slot, sizeof header);
      EXPECT_EQ(header.size, message.bytes.size());
      EXPECT_EQ(header.label, message.label);
      std::copy_n(slot + kernels::kSliceHeaderSize, size, message.bytes.data() + begin);
    }
    store_flag(staging_, sends ? at.posted : at.read, ++lane.count);
    lane.slice += area_.channels();
  }
  [[nodiscard]] bool is_done() const {
    return std::all_of(lanes_.begin(), lanes_.end(), [this](const Lane& lane) { return is_done(lane); });
  }

 private:
  struct Lane {
    std::uint64_t count = 0, slice = 0;
    std::size_t message = 0;
  };
  [[nodiscard]] bool is_done(const Lane& lane) const { return lane.message == messages_.size(); }

  const TransferArea area_;
  std::byte* const staging_;
  const std::size_t rank_;
  const LocalTransfer pair_;
  std::vector<Message> messages_;
  std::vector<Lane> lanes_;
};

// Rank 0 of three sends to rank 2.
struct Relays {
  explicit Relays(std::uint64_t seed) : to(seed), back(seed + 1) {
    first.open(2, out, in);
    last.open(0, reply, arrival);
  }

  Wire to, back;
  WireSender out{to}, reply{back};
  WireReceiver in{back}, arrival{to};
  const TransferArea area = TransferArea::of(3, 0).value();
  std::vector<std::byte> sent = std::vector<std::byte>(TransferArea::kStagedSize), received = sent;
  RelayedMessages first{0, 3, area, sent.data()}, last{2, 3, area, received.data()};
};

std::vector<Message> messages_of(Random& random, std::uint32_t content) {
  std::vector<Message> all;
  for (std::uint64_t label = 1; label <= 6; ++label) {
    const std::size_t sizes[] = {0, 1 + random() % 200, content, content + random() % 9, random() % (30 * content)};
    all.push_back({label, std::vector<std::byte>(sizes[random() % std::size(sizes)])});
    for (std::byte& byte : all.back().bytes) byte = static_cast<std::byte>(random());
  }
  return all;
}

TEST(RelayedMessages, MessagesArriveInOrderWhateverThePieces) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Relays relays(seed);
    const std::vector<Message> messages = messages_of(random, relays.area.slot_content());
    std::vector<Message> expected;
    for (const Message& message : messages) expected.push_back({message.label, std::vector<std::byte>(message.bytes.size())});
    KernelEnd sender(relays.area, relays.sent.data(), 0, {Direction::send, 2}, messages);
    KernelEnd receiver(relays.area, relays.received.data(), 2, {Direction::receive, 0}, expected);
    for (int steps = 0; steps < 200'000 && !(sender.is_done() && receiver.is_done()); ++steps) {
      sender.turn(static_cast<std::uint32_t>(random() % relays.area.channels()));
      receiver.turn(static_cast<std::uint32_t>(random() % relays.area.channels()));
      ASSERT_TRUE(relays.first.advance(2).ok());
      ASSERT_TRUE(relays.last.advance(2).ok());
    }
    EXPECT_TRUE(sender.is_done());
    ASSERT_TRUE(receiver.is_done());
    for (std::size_t i = 0; i < messages.size(); ++i) EXPECT_EQ(receiver.messages()[i].bytes, messages[i].bytes) << i;
    EXPECT_FALSE(relays.first.has_untaken());
    EXPECT_FALSE(relays.last.is_bringing(0));
  }
}

TEST(RelayedMessages, WhatIsNotTakenIsKnownUntilItsReceiverHasLeft) {
  Relays relays(3);
  KernelEnd sender(relays.area, relays.sent.data(), 0, {Direction::send, 2}, {{7, std::vector<std::byte>(10)}});
  EXPECT_FALSE(relays.first.has_untaken());
  sender.turn(0);
  EXPECT_EQ(relays.first.first_untaken(), 2);
  EXPECT_FALSE(relays.last.is_bringing(0));
  relays.first.leave(2);
  EXPECT_FALSE(relays.first.has_untaken());
  ASSERT_TRUE(relays.first.advance(9).ok());
  EXPECT_TRUE(relays.to.entries.empty()) << "it was sent to a rank that has left";
}

TEST(RelayedMessages, AMessageThatTheKernelHasNotReadIsBeingBrought) {
  Relays relays(4);
  KernelEnd sender(relays.area, relays.sent.data(), 0, {Direction::send, 2}, {{7, std::vector<std::byte>(10)}});
  KernelEnd receiver(relays.area, relays.received.data(), 2, {Direction::receive, 0}, {{7, std::vector<std::byte>(10)}});
  sender.turn(0);
  for (int steps = 0; steps < 1000 && relays.to.entries.empty(); ++steps) ASSERT_TRUE(relays.first.advance(1).ok());
  EXPECT_TRUE(relays.last.is_bringing(0));  // in the stream
  for (int steps = 0; steps < 1000 && !relays.to.entries.empty(); ++steps) ASSERT_TRUE(relays.last.advance(1).ok());
  EXPECT_TRUE(relays.to.entries.empty());
  EXPECT_TRUE(relays.last.is_bringing(0));  // in a slot
  receiver.turn(0);
  EXPECT_FALSE(relays.last.is_bringing(0));
}

TEST(RelayedMessages, ARefusalIsAFailure) {
  Relays relays(5);
  KernelEnd sender(relays.area, relays.sent.data(), 0, {Direction::send, 2}, {{7, std::vector<std::byte>(10)}});
  sender.turn(0);
  relays.to.refuses = true;
  const Result<bool> moved = relays.first.advance(1);
  ASSERT_FALSE(moved.ok());
  EXPECT_EQ(moved.status().code(), Code::remote_error);
  EXPECT_NE(std::string(moved.status().text()).find("rank 2 refused"), std::string::npos);
}

}  // namespace
}  // namespace seto
