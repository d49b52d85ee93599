#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "transports/tcp/streams/inbox.h"

namespace seto::tcp {
namespace {

constexpr std::uint32_t kDigest = 7;
constexpr std::uint32_t kSize = 1000;

// A part of a message of slice `slice` of operation 1.
Frame part(std::uint64_t slice, std::uint32_t offset, std::uint32_t length, std::uint32_t size = kSize) {
  Frame frame;
  frame.set_kind(FrameKind::data);
  frame.mark = mark_of(1, slice);
  frame.offset = offset;
  frame.length = length;
  frame.size = size;
  frame.digest = kDigest;
  return frame;
}

class OneInStream : public ::testing::Test {
 protected:
  // The header of a frame arrives; returns the destination of its payload.
  std::byte* begin(const Frame& frame, std::uint64_t done = 0) {
    const Result<InStream::Placed> placed = stream_.place(frame, done);
    EXPECT_TRUE(placed.ok()) << placed.status().text();
    return placed.ok() ? placed.value().at : nullptr;
  }
  void receive(const Frame& frame) {
    std::byte* const at = begin(frame);
    ASSERT_NE(at, nullptr);
    std::memset(at, static_cast<int>(1 + frame.offset % 100), frame.length);
    stream_.arrived(frame, at);
  }
  std::string refusal(const Frame& frame, std::uint64_t done = 0) {
    const Result<InStream::Placed> placed = stream_.place(frame, done);
    return placed.ok() ? std::string() : std::string(placed.status().text());
  }
  // Two slices of the caller's memory.
  Placement placement() {
    Placement wanted;
    wanted.operation = 1;
    wanted.first = caller_.data();
    wanted.stride = kSize;
    wanted.size = 2 * kSize;
    wanted.until = 2;
    return wanted;
  }

  ReceiveBuffers buffers_;
  ReceiveShare share_{buffers_};
  InStream stream_{share_, kMostAhead};
  std::vector<std::byte> caller_ = std::vector<std::byte>(2 * kSize);
};

TEST_F(OneInStream, AMessageIsCompleteWhenAllPartsAreThereInAnyOrder) {
  receive(part(0, 600, 400));
  EXPECT_EQ(stream_.whole(mark_of(1, 0)), nullptr);
  receive(part(0, 0, 300));
  EXPECT_EQ(stream_.whole(mark_of(1, 0)), nullptr);
  receive(part(0, 300, 300));
  const InStream::Message* const message = stream_.whole(mark_of(1, 0));
  ASSERT_NE(message, nullptr);
  EXPECT_EQ(message->size, kSize);
  EXPECT_EQ(message->digest, kDigest);
  EXPECT_EQ(message->data[0], std::byte{1});
  EXPECT_EQ(message->data[300], std::byte{1});
  EXPECT_EQ(message->data[999], std::byte{1});
  EXPECT_EQ(stream_.whole(mark_of(1, 1)), nullptr) << "another slice";
  EXPECT_EQ(stream_.whole(mark_of(2, 0)), nullptr) << "another operation";
}

TEST_F(OneInStream, OnlyTheFirstPartOfAMessageIsFirst) {
  EXPECT_TRUE(stream_.place(part(0, 600, 400), 0).value().first) << "whichever part comes first";
  EXPECT_FALSE(stream_.place(part(0, 0, 600), 0).value().first);
  EXPECT_TRUE(stream_.place(part(1, 0, 600), 0).value().first);
}

TEST_F(OneInStream, AHeaderWithoutItsPayloadIsNoMessage) {
  (void)begin(part(0, 0, kSize));
  EXPECT_EQ(stream_.whole(mark_of(1, 0)), nullptr);
}

TEST_F(OneInStream, AMessageMayBeEmpty) {
  const Frame empty = part(0, 0, 0, 0);
  EXPECT_EQ(stream_.whole(mark_of(1, 0)), nullptr);
  std::byte* const at = begin(empty);
  ASSERT_NE(at, nullptr);
  stream_.arrived(empty, at);
  ASSERT_NE(stream_.whole(mark_of(1, 0)), nullptr);
  EXPECT_EQ(buffers_.in_use(), 0U);
  stream_.drop(mark_of(1, 0));
  EXPECT_EQ(stream_.whole(mark_of(1, 0)), nullptr);
}

TEST_F(OneInStream, DroppedAndForgottenMessagesReturnTheirMemory) {
  for (std::uint64_t slice = 0; slice < 4; ++slice) receive(part(slice, 0, kSize));
  const std::size_t all = buffers_.in_use();
  EXPECT_GE(all, 4 * kSize);
  stream_.drop(mark_of(1, 2));
  EXPECT_EQ(stream_.whole(mark_of(1, 2)), nullptr);
  EXPECT_EQ(buffers_.in_use(), all / 4 * 3);
  stream_.forget_before(0);
  EXPECT_EQ(buffers_.in_use(), all / 4 * 3) << "operation 1 is later";
  stream_.forget_before(1);
  EXPECT_EQ(buffers_.in_use(), 0U);
  EXPECT_EQ(stream_.whole(mark_of(1, 0)), nullptr);
}

// A socket is in the middle of the payload when the message is not wanted any more.
TEST_F(OneInStream, MemoryThatASocketStillWritesToIsReturnedWhenItIsDone) {
  const Frame frame = part(0, 0, kSize);
  std::byte* const at = begin(frame);
  stream_.forget_before(1);
  EXPECT_GE(buffers_.in_use(), kSize);
  stream_.arrived(frame, at);
  EXPECT_EQ(buffers_.in_use(), 0U);
}

TEST_F(OneInStream, TwoSocketsMayWriteToAMessageThatIsNotWantedAnyMore) {
  const Frame one = part(0, 0, 500);
  const Frame other = part(0, 500, 500);
  std::byte* const first = begin(one);
  std::byte* const second = begin(other);
  stream_.forget_before(1);
  stream_.arrived(other, second);
  EXPECT_GE(buffers_.in_use(), kSize) << "the first one still writes";
  stream_.arrived(one, first);
  EXPECT_EQ(buffers_.in_use(), 0U);
}

TEST_F(OneInStream, DataOfAnEndedOperationIsDropped) {
  EXPECT_EQ(begin(part(0, 0, kSize), 1), nullptr);
  EXPECT_EQ(buffers_.in_use(), 0U);
}

TEST_F(OneInStream, AnOperationTakesTheRoomOfOneLongEnded) {
  receive(part(0, 0, kSize));
  const std::size_t one = buffers_.in_use();
  Frame later = part(0, 0, kSize);
  later.mark = mark_of(1 + kMostOperations, 0);
  std::byte* const at = begin(later, 1);
  ASSERT_NE(at, nullptr);
  stream_.arrived(later, at);
  EXPECT_EQ(stream_.whole(mark_of(1, 0)), nullptr);
  EXPECT_NE(stream_.whole(later.mark), nullptr);
  EXPECT_EQ(buffers_.in_use(), one);
}

// ---- malformed input ----

TEST_F(OneInStream, PartsOutsideOfTheirMessageAreRefused) {
  EXPECT_NE(refusal(part(0, 0, kSize + 1)), "");
  EXPECT_NE(refusal(part(0, kSize, 1)), "");
  EXPECT_NE(refusal(part(0, kSize + 1, 0)), "");
  EXPECT_NE(refusal(part(0, ~0U, 2, ~0U)), "") << "the sum does not fit 32 bits";
  EXPECT_EQ(buffers_.in_use(), 0U);
}

TEST_F(OneInStream, BytesThatComeTwiceAreRefused) {
  receive(part(0, 0, 600));
  EXPECT_NE(refusal(part(0, 0, 600)).find("twice"), std::string::npos);
  EXPECT_EQ(refusal(part(0, 600, 400)), "");
  EXPECT_NE(refusal(part(0, 600, 1)).find("twice"), std::string::npos);
}

TEST_F(OneInStream, PartsThatDoNotBelongTogetherAreRefused) {
  receive(part(0, 0, 500));
  EXPECT_NE(refusal(part(0, 500, 400, 900)).find("belong together"), std::string::npos);
  Frame other_digest = part(0, 500, 500);
  other_digest.digest = kDigest + 1;
  EXPECT_NE(refusal(other_digest).find("belong together"), std::string::npos);
}

TEST_F(OneInStream, MoreSlicesThanThereIsCreditForAreRefused) {
  for (std::uint64_t slice = 0; slice < kMostAhead; ++slice) receive(part(slice, 0, 10, 10));
  EXPECT_NE(refusal(part(kMostAhead, 0, 10, 10)).find("credit"), std::string::npos);
  stream_.drop(mark_of(1, 3));
  EXPECT_EQ(refusal(part(kMostAhead, 0, 10, 10)), "") << "one was released";
}

TEST_F(OneInStream, AnOperationMayBeAheadAsFarAsItsLengthPermits) {
  for (const std::uint64_t done : {0U, 5U})
    for (const auto& [bytes, most] : {std::pair(4U << 10, kMostOperations), std::pair(64U << 10, std::uint64_t{4}),
                                      std::pair(4U << 20, kLongOperations), std::pair(5U << 20, kWindow)}) {
      Frame frame = part(0, 0, 1, bytes);
      frame.mark = mark_of(done + most, 0);
      EXPECT_EQ(refusal(frame, done), "") << bytes;
      frame.mark = mark_of(done + most + 1, 0);
      EXPECT_NE(refusal(frame, done), "") << bytes;
      stream_.forget_before(done + most + 1);
    }
}

// Many short slices make a long operation, too.
TEST_F(OneInStream, TheLengthOfAnOperationIsThatOfAllItsMessages) {
  Frame frame = part(0, 0, 1, 1000);
  for (std::uint64_t slice = 0; slice < 4; ++slice) {
    frame.mark = mark_of(kMostOperations, slice);
    EXPECT_EQ(refusal(frame), "") << slice;
  }
  frame.mark = mark_of(kMostOperations, 4);
  EXPECT_NE(refusal(frame).find("further ahead"), std::string::npos) << "5,000 bytes";
}

TEST_F(OneInStream, TellsThatThereIsNoMemory) {
  EXPECT_EQ(refusal(part(1, 0, 0, 0)), "") << "the table of the operation is there";
  buffers_.set_limit(100);
  EXPECT_NE(refusal(part(0, 0, kSize)).find("no memory"), std::string::npos);
  buffers_.set_limit(std::size_t{1} << 20);
  EXPECT_EQ(refusal(part(0, 0, kSize)), "") << "the refused message has left nothing behind";
}

// Messages without bytes need no buffer, but a table remembers each of them.
TEST_F(OneInStream, WhatItRemembersCountsAsMemoryOfThePeer) {
  EXPECT_EQ(share_.in_use(), 0U) << "a stream that is only open here";
  EXPECT_EQ(refusal(part(0, 0, 0, 0)), "");
  const std::size_t one = share_.in_use();
  EXPECT_GE(one, sizeof(InStream) + sizeof(StreamMessage));
  for (std::uint64_t slice = 1; slice < kMostAhead; ++slice) EXPECT_EQ(refusal(part(slice, 0, 0, 0)), "");
  EXPECT_GE(share_.in_use(), one + (kMostAhead - 4) * sizeof(StreamMessage));
  EXPECT_EQ(buffers_.in_use(), 0U);
  Frame next = part(0, 0, 0, 0);
  next.mark = mark_of(2, 0);
  buffers_.set_limit(share_.in_use());
  EXPECT_NE(refusal(next).find("no memory"), std::string::npos) << "another operation has a table of its own";
}

TEST(InStreamMemory, IsReturnedWithTheStream) {
  ReceiveBuffers buffers;
  ReceiveShare share(buffers);
  {
    InStream stream(share, kMostAhead);
    ASSERT_TRUE(stream.place(part(0, 0, kSize), 0).ok());
    ASSERT_TRUE(stream.place(part(9, 0, kSize), 0).ok());
    EXPECT_GE(share.in_use(), 2 * kSize);
  }
  EXPECT_EQ(share.in_use(), 0U);
  EXPECT_EQ(buffers.in_use(), 0U);
}

// ---- placing ----

TEST_F(OneInStream, AWantedMessageArrivesInTheMemoryOfTheCaller) {
  stream_.want(placement(), kDigest);
  receive(part(1, 0, kSize));
  const InStream::Message* const message = stream_.whole(mark_of(1, 1));
  ASSERT_NE(message, nullptr);
  EXPECT_EQ(message->data, caller_.data() + kSize);
  EXPECT_EQ(caller_[kSize], std::byte{1});
  EXPECT_EQ(buffers_.in_use(), 0U);
  stream_.drop(mark_of(1, 1));
  EXPECT_EQ(buffers_.in_use(), 0U) << "the memory is not the stream's to give back";
}

TEST_F(OneInStream, AMessageOfAnotherSizeOrDigestIsNotWrittenToTheCaller) {
  stream_.want(placement(), kDigest + 1);
  receive(part(0, 0, kSize));
  EXPECT_GE(buffers_.in_use(), kSize);
  stream_.forget_before(1);
  stream_.want(placement(), kDigest);
  receive(part(1, 0, kSize - 1, kSize - 1));
  EXPECT_NE(stream_.whole(mark_of(1, 1))->data, caller_.data() + kSize);
  for (const std::byte each : caller_) ASSERT_EQ(each, std::byte{0});
}

TEST_F(OneInStream, DisplacedMessagesAreGoneAndLaterOnesAreNotPlaced) {
  stream_.want(placement(), kDigest);
  receive(part(0, 0, kSize));
  const Placement over = stream_.displace(1);
  EXPECT_EQ(over.first, caller_.data());
  EXPECT_EQ(over.size, 2 * kSize);
  EXPECT_EQ(stream_.whole(mark_of(1, 0)), nullptr);
  receive(part(1, 0, kSize));
  EXPECT_GE(buffers_.in_use(), kSize);
  EXPECT_EQ(stream_.displace(1).size, 0U) << "a second time there is nothing to displace";
}

// The caller reads or reuses a destination after its release.
TEST_F(OneInStream, AReleasedDestinationIsNotWrittenAgain) {
  stream_.want(placement(), kDigest);
  receive(part(0, 0, kSize));
  stream_.drop(mark_of(1, 0));
  receive(part(0, 0, kSize));
  EXPECT_NE(stream_.whole(mark_of(1, 0))->data, caller_.data());
}

// The path broke: the part comes again.
TEST_F(OneInStream, HalfAPartIsAsIfItHadNeverCome) {
  std::byte* const at = begin(part(0, 0, 600));
  receive(part(0, 600, 400));
  EXPECT_NE(refusal(part(0, 0, 600)), "") << "twice";
  stream_.unplace(part(0, 0, 600), at);
  EXPECT_EQ(stream_.whole(mark_of(1, 0)), nullptr);
  receive(part(0, 0, 600));
  EXPECT_NE(stream_.whole(mark_of(1, 0)), nullptr);
}

TEST_F(OneInStream, HalfAPartOfADroppedMessageReturnsItsMemory) {
  std::byte* const at = begin(part(0, 0, 600));
  const std::size_t held = share_.in_use();
  stream_.forget_before(1);
  EXPECT_EQ(share_.in_use(), held) << "a socket reads into it";
  stream_.unplace(part(0, 0, 600), at);
  EXPECT_LT(share_.in_use(), held);
}

}  // namespace
}  // namespace seto::tcp
