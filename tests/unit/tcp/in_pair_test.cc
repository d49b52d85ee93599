#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

#include "transports/tcp/streams/inbox.h"

namespace seto::tcp {
namespace {

constexpr MessageHeader kHeader{3000, 42, 0};

// A piece of message `message` with so many bytes behind its header.
Frame piece(std::uint64_t message, std::uint64_t position, std::uint32_t bytes) {
  Frame frame;
  frame.set_kind(FrameKind::pair);
  frame.mark = message;
  frame.set_position(position);
  frame.length = static_cast<std::uint32_t>(kMessageHeaderSize) + bytes;
  return frame;
}

class OneInPair : public ::testing::Test {
 protected:
  void receive(const Frame& frame) {
    const Result<std::byte*> at = pair_.place(frame);
    ASSERT_TRUE(at.ok()) << at.status().text();
    ASSERT_NE(at.value(), nullptr);
    put_header(at.value(), kHeader);
    pair_.arrived(frame, at.value());
  }
  std::string refusal(const Frame& frame) {
    const Result<std::byte*> at = pair_.place(frame);
    return at.ok() ? std::string() : std::string(at.status().text());
  }

  ReceiveBuffers buffers_;
  ReceiveShare share_{buffers_};
  InPair pair_{share_};
};

TEST(MessageHeaders, SurviveTheirEncoding) {
  std::array<std::byte, kMessageHeaderSize> bytes;
  for (const MessageHeader& header : {MessageHeader{}, MessageHeader{~std::uint64_t{0}, 7, ~0U}, kHeader}) {
    put_header(bytes.data(), header);
    EXPECT_EQ(header_in(bytes.data()), header);
  }
}

TEST_F(OneInPair, AMessageIsKnownWhenAPieceOfItIsComplete) {
  EXPECT_EQ(pair_.header_of(1), nullptr);
  const Frame frame = piece(1, 1000, 1000);
  std::byte* const at = pair_.place(frame).value();
  EXPECT_EQ(pair_.header_of(1), nullptr) << "only the header of the frame is there";
  put_header(at, kHeader);
  pair_.arrived(frame, at);
  ASSERT_NE(pair_.header_of(1), nullptr) << "whichever piece it is";
  EXPECT_EQ(*pair_.header_of(1), kHeader);
  EXPECT_EQ(pair_.header_of(2), nullptr);
  EXPECT_EQ(pair_.piece_at(1, 0), nullptr) << "the first piece has not arrived";
  ASSERT_NE(pair_.piece_at(1, 1000), nullptr);
  EXPECT_EQ(pair_.piece_at(1, 1000)->length, frame.length);
}

TEST_F(OneInPair, CreditReturnsWithEachPieceThatIsDropped) {
  receive(piece(1, 0, 1000));
  receive(piece(1, 1000, 0));
  EXPECT_EQ(pair_.released(), 0U);
  pair_.drop_piece(1, 0);
  EXPECT_EQ(pair_.released(), 1000 + kMessageHeaderSize);
  pair_.drop_piece(1, 1000);
  EXPECT_EQ(pair_.released(), 1000 + kMessageHeaderSize + kSmallestCharge) << "an empty piece costs memory, too";
  EXPECT_EQ(buffers_.in_use(), 0U);
}

TEST_F(OneInPair, AnEndedMessageReturnsTheCreditOfAllItsPieces) {
  receive(piece(1, 0, 1000));
  receive(piece(2, 0, 1000));
  receive(piece(3, 0, 1000));
  pair_.end(2);
  EXPECT_EQ(pair_.released(), 2 * (1000 + kMessageHeaderSize));
  EXPECT_EQ(pair_.header_of(1), nullptr);
  EXPECT_EQ(pair_.header_of(2), nullptr);
  EXPECT_NE(pair_.header_of(3), nullptr);
  pair_.end(3);
  EXPECT_EQ(buffers_.in_use(), 0U);
}

// The sender cannot know yet that its message was refused: what it has sent meanwhile must not use up its credit for ever.
TEST_F(OneInPair, PiecesOfAnEndedMessageAreDroppedAndTheirCreditReturns) {
  pair_.end(1);
  const Result<std::byte*> late = pair_.place(piece(1, 0, 1000));
  ASSERT_TRUE(late.ok());
  EXPECT_EQ(late.value(), nullptr);
  EXPECT_EQ(pair_.released(), 0U) << "half of it may come again";
  pair_.arrived(piece(1, 0, 1000), nullptr);
  EXPECT_EQ(pair_.released(), 1000 + kMessageHeaderSize);
  EXPECT_EQ(buffers_.in_use(), 0U);
}

TEST_F(OneInPair, APieceThatASocketStillReadsIsReturnedWhenItIsDone) {
  const Frame frame = piece(1, 0, 1000);
  std::byte* const at = pair_.place(frame).value();
  pair_.end(1);
  EXPECT_EQ(pair_.released(), 1000 + kMessageHeaderSize) << "the sender need not wait for that";
  EXPECT_GT(buffers_.in_use(), 0U);
  pair_.arrived(frame, at);
  EXPECT_EQ(buffers_.in_use(), 0U);
}

TEST_F(OneInPair, ASenderMayBeAheadByAWindow) {
  constexpr std::uint32_t kPiece = (64 << 10) - kMessageHeaderSize;
  constexpr std::uint64_t kPieces = kPairCredit / (64 << 10);
  for (std::uint64_t i = 0; i < kPieces; ++i) receive(piece(1, i * kPiece, kPiece));
  EXPECT_NE(refusal(piece(1, kPieces * kPiece, kPiece)).find("credit"), std::string::npos);
  pair_.drop_piece(1, 0);
  receive(piece(1, kPieces * kPiece, kPiece));
  pair_.widen(kPairCredit + (64 << 10));
  receive(piece(1, (kPieces + 1) * kPiece, kPiece));
  EXPECT_NE(refusal(piece(1, (kPieces + 2) * kPiece, 0)), "");
}

TEST_F(OneInPair, ThereIsALimitOfEmptyMessages) {
  constexpr std::uint64_t kMost = kPairCredit / kSmallestCharge;
  for (std::uint64_t message = 1; message <= kMost; ++message) receive(piece(message, 0, 0));
  EXPECT_NE(refusal(piece(kMost + 1, 0, 0)).find("credit"), std::string::npos);
}

TEST_F(OneInPair, MalformedPiecesAreRefused) {
  Frame short_frame = piece(1, 0, 0);
  --short_frame.length;
  EXPECT_NE(refusal(short_frame).find("header"), std::string::npos);
  receive(piece(1, 0, 100));
  EXPECT_NE(refusal(piece(1, 0, 100)).find("twice"), std::string::npos);
}

// 32,768 empty messages use more memory for their entries than for their bytes.
TEST_F(OneInPair, TheEntriesOfMessagesAndPiecesAreChargedToThePeer) {
  const auto beside_buffers = [&] { return share_.in_use() - buffers_.in_use(); };
  receive(piece(1, 0, 100));
  const std::size_t of_a_message = beside_buffers();
  EXPECT_GE(of_a_message, sizeof(MessageHeader) + sizeof(InPair::Piece));
  receive(piece(1, 100, 100));
  const std::size_t of_a_piece = beside_buffers() - of_a_message;
  EXPECT_GE(of_a_piece, sizeof(InPair::Piece));
  EXPECT_LT(of_a_piece, of_a_message);
  receive(piece(2, 0, 100));
  EXPECT_EQ(beside_buffers(), 2 * of_a_message + of_a_piece);
  pair_.drop_piece(1, 0);
  EXPECT_EQ(beside_buffers(), 2 * of_a_message);
  EXPECT_NE(refusal(piece(2, 0, 100)), "");
  EXPECT_EQ(beside_buffers(), 2 * of_a_message) << "a refused piece has no entry";
  pair_.end(1);
  EXPECT_EQ(beside_buffers(), of_a_message);
  pair_.end(2);
  EXPECT_EQ(share_.in_use(), 0U);
}

TEST_F(OneInPair, AMessageWithoutMemoryIsNotCharged) {
  buffers_.set_limit(512);
  EXPECT_NE(refusal(piece(1, 0, 1000)).find("no memory"), std::string::npos);
  EXPECT_EQ(share_.in_use(), 0U);
}

TEST_F(OneInPair, TellsThatThereIsNoMemoryAndKeepsTheCredit) {
  buffers_.set_limit(100);
  EXPECT_NE(refusal(piece(1, 0, 1000)).find("no memory"), std::string::npos);
  buffers_.set_limit(2 * kPairCredit);
  constexpr std::uint32_t kPiece = (64 << 10) - kMessageHeaderSize;
  for (std::uint64_t i = 0; i < kPairCredit / (64 << 10); ++i) receive(piece(1, i * kPiece, kPiece));
}

// The path broke: the piece comes again.
TEST_F(OneInPair, HalfAPieceIsAsIfItHadNeverCome) {
  const std::size_t before = share_.in_use();
  const Frame frame = piece(1, 0, 1000);
  std::byte* const at = pair_.place(frame).value();
  EXPECT_NE(refusal(frame), "") << "twice";
  pair_.unplace(frame, at);
  EXPECT_EQ(share_.in_use(), before);
  EXPECT_EQ(pair_.released(), 0U);
  receive(frame);
  ASSERT_NE(pair_.piece_at(1, 0), nullptr);
  pair_.end(1);
  EXPECT_EQ(pair_.released(), frame.length);
}

// Whether the message is refused before, between or after the two: the sender gets the credit once.
TEST_F(OneInPair, HalfAPieceOfARefusedMessageGivesItsCreditOnce) {
  const Frame frame = piece(1, 0, 1000);
  std::byte* const at = pair_.place(frame).value();
  pair_.end(1);
  EXPECT_EQ(pair_.released(), frame.length);
  pair_.unplace(frame, at);
  EXPECT_EQ(pair_.released(), 0U);
  EXPECT_EQ(pair_.place(frame).value(), nullptr);
  EXPECT_EQ(pair_.place(frame).value(), nullptr) << "it broke again";
  pair_.arrived(frame, nullptr);
  EXPECT_EQ(pair_.released(), frame.length);
  std::byte* const second = pair_.place(piece(2, 0, 500)).value();
  pair_.end(2);
  pair_.arrived(piece(2, 0, 500), second);
  EXPECT_EQ(pair_.released(), frame.length + piece(2, 0, 500).length);
}

}  // namespace
}  // namespace seto::tcp
