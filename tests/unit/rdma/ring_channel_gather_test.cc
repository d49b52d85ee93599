#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <random>

#include "tests/support/seed.h"
#include "tests/unit/rdma/channel_ends.h"

// Records of which a part is gathered from memory of a user.
namespace seto::rdma {
namespace {

using support::FakeFabric;
using Part = RingChannel::Part;

class ChannelGather : public ChannelTest {
 protected:
  ChannelGather() {
    fabric.add_ethernet("rxe0", "10.0.0.1");
    fabric.add_ethernet("rxe1", "10.0.0.2");
    for (char& each : memory) each = static_cast<char>(random());
  }
  void SetUp() override {
    open(fabric);
    region = ends[0].device->register_memory(reinterpret_cast<std::byte*>(memory.data()), memory.size()).value();
    fabric.count_reads_of(reinterpret_cast<const std::byte*>(memory.data()), memory.size());
  }
  void TearDown() override {
    close();
    region.reset();
  }
  static Part copied(const std::string& text) { return {std::as_bytes(std::span(text)), {}}; }
  [[nodiscard]] Part lent(std::size_t at, std::size_t size) const {
    return {std::as_bytes(std::span(memory)).subspan(at, size), region->local_key()};
  }
  std::string next_record() {
    for (int turns = 0; turns < 1'000 && front(ends[1]).empty(); ++turns) {
      for (ChannelEnd& end : ends) end.poll();
      fabric.step();
    }
    const std::string record = front(ends[1]);
    if (!record.empty()) ends[1].channel->release();
    return record;
  }

  std::mt19937_64 random{testing::chosen_seed()};
  FakeFabric fabric{testing::chosen_seed()};
  std::string memory = std::string(5'000, '\0');
  std::unique_ptr<MemoryRegion> region;
};

TEST_F(ChannelGather, PartsKeepTheirOrder) {
  ASSERT_TRUE(ends[0].channel->send(copied("head"), lent(7, 1'000)).has_value());
  EXPECT_EQ(next_record(), "head" + memory.substr(7, 1'000));
  ASSERT_TRUE(ends[0].channel->send(lent(8, 900), copied("tail")).has_value());
  EXPECT_EQ(next_record(), memory.substr(8, 900) + "tail");
  ASSERT_TRUE(ends[0].channel->send(lent(9, 100), lent(2'000, 300)).has_value());
  EXPECT_EQ(next_record(), memory.substr(9, 100) + memory.substr(2'000, 300));
  ASSERT_TRUE(ends[0].channel->send(lent(0, 40), lent(40, 40)).has_value());
  EXPECT_EQ(next_record(), memory.substr(0, 80));
  ASSERT_TRUE(ends[0].channel->send(lent(5, 1), copied("")).has_value()) << "shorter than what is inlined";
  EXPECT_EQ(next_record(), memory.substr(5, 1));
  EXPECT_EQ(fabric.bytes_read(), 1'000U + 900 + 400 + 80 + 1);
}

TEST_F(ChannelGather, StayUntilTheReport) {
  const auto ticket = ends[0].channel->send(copied("head"), lent(0, 1'000));
  ASSERT_TRUE(ticket.has_value());
  ends[0].channel->flush();
  fabric.run();
  EXPECT_FALSE(ends[0].channel->written(*ticket)) << "the report was not taken";
  ends[0].poll();
  EXPECT_TRUE(ends[0].channel->written(*ticket)) << "each is reported, though no other follows";
}

// The device has not read everything, and reads nothing any more.
TEST_F(ChannelGather, AreNotReadAfterTheEnd) {
  ASSERT_TRUE(ends[0].channel->send(copied("head"), lent(0, 4'000)).has_value());
  ends[0].channel->flush();
  for (int steps = 0; steps < 8; ++steps) fabric.step();
  const std::size_t before = fabric.bytes_read();
  EXPECT_GT(before, 0U);
  EXPECT_LT(before, 4'000U);
  ends[0].channel->stop(failure(Code::aborted, "the end"));
  fabric.run();
  EXPECT_EQ(fabric.bytes_read(), before);
  EXPECT_TRUE(ends[0].channel->broken());
  EXPECT_EQ(ends[0].channel->queue_pair(), 0U);
  EXPECT_FALSE(ends[0].channel->send(copied("more"), {}).has_value());
  ends[0].poll();
  ends[0].channel->stop(failure(Code::aborted, "again"));
  EXPECT_EQ(ends[0].channel->why().text(), "the end");
}

TEST_F(ChannelGather, WhatHadComeIsReadAfterTheEnd) {
  ASSERT_TRUE(send(ends[1], "from the peer"));
  ends[1].channel->flush();
  fabric.run();
  ends[0].poll();
  ends[0].channel->stop(failure(Code::aborted, "the end"));
  EXPECT_EQ(front(ends[0]), "from the peer");
}

TEST_F(ChannelGather, AKeyThatIsNoneBreaksTheChannel) {
  const Part wrong{std::as_bytes(std::span(memory)).first(1'000), region->local_key() + 1'000};
  ASSERT_TRUE(ends[0].channel->send(copied("head"), wrong).has_value());
  ends[0].channel->flush();
  fabric.run();
  ends[0].poll();
  EXPECT_TRUE(ends[0].channel->broken());
  EXPECT_EQ(front(ends[1]), "");
}

// The memory is written over as soon as it may be.
TEST_F(ChannelGather, ManyInOrder) {
  struct Sent {
    std::string bytes;
    std::uint64_t ticket;
    std::size_t at, size;
  };
  std::deque<Sent> unread, unwritten;
  for (std::uint64_t sent = 0, read = 0, rounds = 0; read < 500;) {
    ASSERT_LT(++rounds, 1'000'000U) << "stuck after " << read << " records";
    const std::size_t size = 1 + random() % 1'500;
    const std::size_t at = random() % (memory.size() - size);
    const std::string head(random() % 70, 'h');
    const bool first = random() % 2 == 0;
    if (sent < 500 && random() % 2 == 0) {
      const auto ticket =
          first ? ends[0].channel->send(lent(at, size), copied(head)) : ends[0].channel->send(copied(head), lent(at, size));
      if (ticket.has_value()) {
        ++sent;
        const std::string part = memory.substr(at, size);
        unread.push_back({first ? part + head : head + part, *ticket, at, size});
        unwritten.push_back(unread.back());
      }
    }
    for (std::uint64_t steps = random() % 32; steps > 0; --steps) fabric.step();
    for (ChannelEnd& end : ends) end.poll();
    while (!unwritten.empty() && ends[0].channel->written(unwritten.front().ticket)) unwritten.pop_front();
    if (unwritten.empty()) std::generate(memory.begin(), memory.end(), [&] { return static_cast<char>(random()); });
    if (front(ends[1]).empty()) continue;
    ASSERT_EQ(front(ends[1]), unread.front().bytes) << "record " << read;
    ends[1].channel->release();
    unread.pop_front();
    ++read;
  }
}

}  // namespace
}  // namespace seto::rdma
