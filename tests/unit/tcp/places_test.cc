// Which bytes of a peer a rail may write, from what both ends say of an operation.

#include "transports/tcp/frames/places.h"

#include <gtest/gtest.h>

#include <array>

namespace seto::tcp {
namespace {

constexpr std::uint64_t kGroup = 3;
constexpr std::uint32_t kStride = 1'000, kDigest = 9;
constexpr RailName kRail{1, 5};

Frame frame_of(std::uint64_t operation, std::uint64_t slice, std::uint32_t size = kStride) {
  Frame frame;
  frame.peer_group = kGroup;
  frame.port = 2;
  frame.digest = kDigest;
  frame.mark = mark_of(operation, slice);
  frame.size = frame.length = size;
  return frame;
}

PlaceWords words(std::uint64_t until = 3) {
  PlaceWords words;
  words.first = 0x1000;
  words.size = 2'500;
  words.stride = kStride;
  words.until = until;
  words.keys = 1;
  words.key[0] = {kRail, 77};
  return words;
}

TEST(RemotePlaces, NameTheBytesOfASlice) {
  RemotePlaces places;
  ASSERT_TRUE(places.hear(frame_of(4, 0), words()).ok());
  Frame part = frame_of(4, 1);
  part.offset = 600;
  part.length = 400;
  const auto target = places.target_of(part, kRail);
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->address, 0x1000U + 1'600);
  EXPECT_EQ(target->key, 77U);
  EXPECT_TRUE(places.target_of(frame_of(4, 2, 500), kRail).has_value()) << "the last slice is shorter";
}

TEST(RemotePlaces, RefuseWhatDiffers) {
  RemotePlaces places;
  ASSERT_TRUE(places.hear(frame_of(4, 0), words(2)).ok());
  EXPECT_FALSE(places.target_of(frame_of(5, 0), kRail)) << "another operation";
  EXPECT_FALSE(places.target_of(frame_of(6, 0), kRail)) << "one that would be in its slot";
  EXPECT_FALSE(places.target_of(frame_of(4, 2, 500), kRail)) << "a slice that may not be written yet";
  EXPECT_FALSE(places.target_of(frame_of(4, 1, 999), kRail)) << "another size";
  EXPECT_FALSE(places.target_of(frame_of(4, 3), kRail)) << "behind the end";
  EXPECT_FALSE(places.target_of(frame_of(4, 1), RailName{1, 6})) << "a later rail in its place";
  EXPECT_FALSE(places.target_of(frame_of(4, 1), RailName{0, 5})) << "another rail";
  Frame other = frame_of(4, 1);
  other.digest = kDigest + 1;
  EXPECT_FALSE(places.target_of(other, kRail)) << "another call";
  other = frame_of(4, 1);
  other.port = 3;
  EXPECT_FALSE(places.target_of(other, kRail)) << "another stream";
  EXPECT_TRUE(places.target_of(frame_of(4, 1), kRail));
}

TEST(RemotePlaces, OvertakeEachOther) {
  RemotePlaces places;
  ASSERT_TRUE(places.hear(frame_of(4, 0), words(3)).ok());
  ASSERT_TRUE(places.hear(frame_of(4, 0), words(1)).ok());
  EXPECT_TRUE(places.target_of(frame_of(4, 1), kRail)) << "the longer permission stays";
  ASSERT_TRUE(places.hear(frame_of(6, 0), words(3)).ok());
  ASSERT_TRUE(places.hear(frame_of(4, 0), words(3)).ok());
  EXPECT_FALSE(places.target_of(frame_of(4, 1), kRail)) << "an operation that has ended";
  EXPECT_TRUE(places.target_of(frame_of(6, 1), kRail));
  places.forget(kGroup);
  EXPECT_FALSE(places.target_of(frame_of(6, 1), kRail));
  EXPECT_TRUE(places.empty());
}

TEST(RemotePlaces, RefuseMalformedWords) {
  RemotePlaces places;
  PlaceWords wrong = words();
  wrong.stride = 0;
  EXPECT_FALSE(places.hear(frame_of(1, 0), wrong).ok());
  wrong = words();
  wrong.keys = PlaceWords::kMostKeys + 1;
  EXPECT_FALSE(places.hear(frame_of(1, 0), wrong).ok());
  wrong = words();
  wrong.until = kMaxSlices + 2;
  EXPECT_FALSE(places.hear(frame_of(1, 0), wrong).ok());
}

TEST(RemotePlaces, AreBounded) {
  RemotePlaces places;
  Frame frame = frame_of(1, 0);
  for (std::size_t i = 0; i <= RemotePlaces::kMostStreams; ++i) {
    frame.port = static_cast<std::uint16_t>(i);
    ASSERT_TRUE(places.hear(frame, words()).ok());
  }
  frame.length = kStride;
  EXPECT_FALSE(places.target_of(frame, kRail)) << "travels as bytes";
  frame.port = 0;
  EXPECT_TRUE(places.target_of(frame, kRail));
}

class ToldPlacesTest : public ::testing::Test {
 protected:
  ToldPlaces::Place& tell(std::uint64_t operation) {
    ToldPlaces::Place& place = places.place_of(stream_of(frame_of(operation, 0)), operation, over);
    place.where.first = memory.data();
    place.where.stride = kStride;
    place.where.size = 2'500;
    place.where.until = 2;
    place.grants[kRail.rail] = {kRail, 77, 0};
    return place;
  }
  std::array<std::byte, 2'500> memory{};
  ToldPlaces places;
  ToldPlaces::Place over;
};

TEST_F(ToldPlacesTest, AreWhereTheReceiverSaid) {
  tell(4);
  Frame part = frame_of(4, 1);
  part.offset = 600;
  part.length = 400;
  EXPECT_EQ(places.at(part, kRail), memory.data() + 1'600);
  EXPECT_EQ(places.at(part, RailName{1, 6}), nullptr) << "told to another rail";
  EXPECT_EQ(places.at(part, RailName{9, 5}), nullptr);
  EXPECT_EQ(places.at(frame_of(4, 2, 500), kRail), nullptr) << "not to be written yet";
  EXPECT_EQ(places.at(frame_of(6, 1), kRail), nullptr);
  part.length = 401;
  EXPECT_EQ(places.at(part, kRail), nullptr) << "beyond its message";
}

TEST_F(ToldPlacesTest, EndWithTheirLastSlice) {
  tell(4);
  const StreamName stream = stream_of(frame_of(4, 0));
  EXPECT_FALSE(places.released(stream, mark_of(4, 0)));
  EXPECT_FALSE(places.released(stream, mark_of(4, 1)));
  EXPECT_FALSE(places.released(stream, mark_of(6, 2))) << "of another operation";
  const auto ended = places.released(stream, mark_of(4, 2));
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->grants[kRail.rail].key, 77U);
  EXPECT_TRUE(places.empty());
  EXPECT_FALSE(places.released(stream, mark_of(4, 2)));
}

TEST_F(ToldPlacesTest, EndWithTheirMemoryOrTheirCommunicator) {
  tell(4);
  tell(5);
  EXPECT_FALSE(places.take_within(memory.data() + memory.size(), 100));
  EXPECT_TRUE(places.take_within(memory.data() + 2'499, 1));
  EXPECT_TRUE(places.take_within(memory.data() + 2'499, 1));
  EXPECT_FALSE(places.take_within(memory.data() + 2'499, 1));
  EXPECT_TRUE(places.empty());
  tell(6);
  EXPECT_FALSE(places.take_of(kGroup + 1));
  EXPECT_TRUE(places.take_of(kGroup));
  EXPECT_FALSE(places.take_of(kGroup));
  EXPECT_TRUE(places.empty());
}

TEST_F(ToldPlacesTest, GiveTheirSlotToALaterOperation) {
  tell(4);
  EXPECT_EQ(over.where.operation, 0U);
  tell(6);
  EXPECT_EQ(over.where.operation, 4U);
  EXPECT_EQ(places.at(frame_of(4, 1), kRail), nullptr);
  EXPECT_NE(places.at(frame_of(6, 1), kRail), nullptr);
}

// Another attempt to make a rail in the same place has another mark, and so have the next ones.
TEST(WrittenBy, DiffersForAttemptsThatFollow) {
  for (std::uint32_t attempt = 1; attempt < 40; ++attempt) {
    EXPECT_NE(written_by(attempt), 0);
    EXPECT_EQ(written_by(attempt) & ~kWriter, 0);
    for (std::uint32_t later = 1; later < 15; ++later) EXPECT_NE(written_by(attempt), written_by(attempt + later));
  }
}

}  // namespace
}  // namespace seto::tcp
