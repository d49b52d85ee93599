#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <random>

#include "tests/support/seed.h"
#include "tests/unit/rdma/channel_ends.h"
#include "transports/rdma/link/ring_channel.h"

// Writes into places of the peer, among records.
namespace seto::rdma {
namespace {

using support::FakeFabric;

class ChannelWrite : public ChannelTest {
 protected:
  ChannelWrite() {
    fabric.add_ethernet("rxe0", "10.0.0.1");
    fabric.add_ethernet("rxe1", "10.0.0.2");
    source.assign(5'000, std::byte{'s'});
    target.assign(5'000, std::byte{'t'});
  }
  void TearDown() override {
    source_region.reset();
    target_region.reset();
    close();
  }
  void register_both() {
    source_region = ends[0].device->register_memory(source.data(), source.size()).value();
    target_region = ends[1].device->register_memory(target.data(), target.size()).value();
  }
  [[nodiscard]] RemotePlace place(std::size_t offset = 0) const {
    return {reinterpret_cast<std::uint64_t>(target.data()) + offset, target_region->remote_key()};
  }

  FakeFabric fabric{testing::chosen_seed()};
  std::vector<std::byte> source, target;
  std::unique_ptr<MemoryRegion> source_region, target_region;
};

TEST_F(ChannelWrite, IsThereBeforeALaterRecord) {
  open(fabric);
  register_both();
  const auto ticket = ends[0].channel->write(source, source_region->local_key(), place());
  ASSERT_TRUE(ticket.has_value());
  ASSERT_TRUE(send(ends[0], "it is there"));
  ends[0].channel->flush();
  while (front(ends[1]).empty()) {
    ASSERT_TRUE(fabric.step()) << "the record did not come";
    ends[1].poll();
  }
  EXPECT_EQ(front(ends[1]), "it is there");
  EXPECT_EQ(target, source);
}

TEST_F(ChannelWrite, KeepsItsSourceUntilTheReport) {
  open(fabric);
  register_both();
  const auto ticket = ends[0].channel->write(source, source_region->local_key(), place());
  ASSERT_TRUE(ticket.has_value());
  EXPECT_FALSE(ends[0].channel->written(*ticket)) << "nothing was handed over";
  ends[0].channel->flush();
  EXPECT_FALSE(ends[0].channel->written(*ticket));
  fabric.run();
  EXPECT_FALSE(ends[0].channel->written(*ticket)) << "the report was not taken";
  ends[0].poll();
  EXPECT_TRUE(ends[0].channel->written(*ticket));
  EXPECT_TRUE(ends[0].channel->delivered());
}

TEST_F(ChannelWrite, TakesNoRoomOfTheRing) {
  open(fabric, 16 << 10, 32);
  register_both();
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(ends[0].channel->write(source, source_region->local_key(), place()).has_value()) << "write " << i;
    ends[0].channel->flush();
    fabric.run();
    ends[0].poll();
  }
  EXPECT_EQ(front(ends[1]), "");
  std::size_t records = 0;
  while (send(ends[0], "x")) ++records;
  EXPECT_EQ(records, 32U);
}

TEST_F(ChannelWrite, LeavesRoomInTheQueueForCredit) {
  open(fabric, 16 << 10, 32);
  register_both();
  std::size_t writes = 0;
  while (ends[0].channel->write(source, source_region->local_key(), place()).has_value()) ++writes;
  EXPECT_EQ(writes, 32U);
  // The peer sends until it needs credit, which finds a place in the full queue of this end.
  std::size_t sent = 0;
  while (send(ends[1], "x")) ++sent;
  ends[1].channel->flush();
  for (int i = 0; i < 1'000 && fabric.step(); ++i) {
  }
  for (ChannelEnd& end : ends) end.poll();
  for (std::size_t i = 0; i < sent; ++i) ends[0].channel->release();
  for (int i = 0; i < 4; ++i) {
    for (ChannelEnd& end : ends) end.poll();
    fabric.run();
  }
  EXPECT_TRUE(send(ends[1], "y"));
}

TEST_F(ChannelWrite, CarriesNoCreditByItself) {
  open(fabric, 16 << 10, 32);
  register_both();
  std::size_t sent = 0;
  while (send(ends[1], "x")) ++sent;
  ends[1].channel->flush();
  fabric.run();
  ends[0].poll();
  for (std::size_t i = 0; i < sent; ++i) ends[0].channel->release();
  // A doorbell of writes alone must not count as news to the peer.
  ASSERT_TRUE(ends[0].channel->write(source, source_region->local_key(), place()).has_value());
  for (int i = 0; i < 4; ++i) {
    for (ChannelEnd& end : ends) end.poll();
    fabric.run();
  }
  for (ChannelEnd& end : ends) end.poll();
  EXPECT_TRUE(send(ends[1], "y"));
}

TEST_F(ChannelWrite, OutsideThePlaceBreaksTheChannel) {
  open(fabric);
  register_both();
  ASSERT_TRUE(ends[0].channel->write(source, source_region->local_key(), place(1)).has_value());
  ends[0].channel->flush();
  fabric.run();
  ends[0].poll();
  ASSERT_TRUE(ends[0].channel->broken());
  EXPECT_FALSE(ends[0].channel->write(source, source_region->local_key(), place()).has_value());
  EXPECT_EQ(target.back(), std::byte{'t'});
}

TEST_F(ChannelWrite, RefusesNothingAndTooMuch) {
  open(fabric);
  register_both();
  EXPECT_FALSE(ends[0].channel->write({}, source_region->local_key(), place()).has_value());
  const std::span<const std::byte> too_long(source.data(), RingChannel::kMostWritten + 1);
  EXPECT_FALSE(ends[0].channel->write(too_long, source_region->local_key(), place()).has_value());
  EXPECT_FALSE(ends[0].channel->broken());
}

// Messages at random in the ring, or into one of a few places, which the reader tells again once it has looked.
class MixedMessages : public ChannelWrite {
 protected:
  static constexpr std::size_t kPlaces = 3, kBytes = 3'000;
  static constexpr std::uint64_t kMessages = 600;

  void SetUp() override {
    open(fabric, 16 << 10, 16);
    source.resize(kPlaces * kBytes);
    target.resize(kPlaces * kBytes);
    register_both();
  }
  [[nodiscard]] std::span<std::byte> part(std::vector<std::byte>& whole, std::size_t number) const {
    return std::span(whole).subspan(number * kBytes, kBytes);
  }

  void send_next() {
    if (sent == kMessages) return;
    const std::size_t number = told.empty() ? 0 : told.front();
    const bool free = !told.empty() && (!tickets[number].has_value() || ends[0].channel->written(*tickets[number]));
    if (!record_is_due && free && random() % 2 == 0) {
      const auto bytes = part(source, number);
      std::fill(bytes.begin(), bytes.end(), static_cast<std::byte>(sent));
      tickets[number] = ends[0].channel->write(bytes, source_region->local_key(), place(number * kBytes));
      record_is_due = tickets[number].has_value();
    }
    const std::string text = record_is_due ? std::to_string(number) : std::string(2 + random() % 2'000, 'r');
    if (!send(ends[0], text)) return;
    if (record_is_due) told.pop_front();
    record_is_due = false;
    ++sent;
  }
  void read_next() {
    if (const std::string again = front(ends[0]); !again.empty()) {
      told.push_back(std::stoul(again));
      ends[0].channel->release();
    }
    const std::string record = front(ends[1]);
    if (record.empty()) return;
    if (record.size() == 1) {
      const auto bytes = part(target, std::stoul(record));
      const auto right = std::count(bytes.begin(), bytes.end(), static_cast<std::byte>(read));
      ASSERT_EQ(right, static_cast<std::ptrdiff_t>(kBytes)) << "message " << read << " in place " << record;
      ++placed;
      if (!send(ends[1], record)) return;
    }
    ends[1].channel->release();
    ++read;
  }

  std::mt19937_64 random{testing::chosen_seed()};
  std::deque<std::size_t> told{0, 1, 2};
  std::optional<std::uint64_t> tickets[kPlaces];
  bool record_is_due = false;
  std::uint64_t sent = 0, read = 0, placed = 0;
};

TEST_F(MixedMessages, KeepTheirOrder) {
  std::uint64_t rounds = 0;
  while (read < kMessages) {
    ASSERT_LT(++rounds, 200'000U) << "stuck after " << read << " messages";
    switch (random() % 4) {
      case 0:
        send_next();
        break;
      case 1:
        for (ChannelEnd& end : ends) end.poll();
        break;
      case 2:
        for (std::uint64_t steps = random() % 64; steps > 0; --steps) fabric.step();
        break;
      default:
        ASSERT_NO_FATAL_FAILURE(read_next());
    }
    for (const ChannelEnd& end : ends) ASSERT_FALSE(end.channel->broken()) << end.channel->why().text();
  }
  EXPECT_GT(placed, kMessages / 10);
}

}  // namespace
}  // namespace seto::rdma
