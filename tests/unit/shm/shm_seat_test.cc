#include "transports/shm/shm_seat.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>

#include "transports/shm/segment.h"

namespace seto {
namespace {

// The memory of a context without peers.
struct Home {
  std::shared_ptr<const ContextMemory> memory =
      std::make_shared<ContextMemory>(ContextMemory{Segment::create({std::uint64_t{64} << 20}).value(), nullptr});
  slots::Pool pool{kMemoryHeadSize, memory->segment.size(),
                   [this](std::size_t offset, std::size_t size) { return segment().populate(offset, size); },
                   [this](std::size_t offset, std::size_t size) { return segment().release(offset, size); }};

  [[nodiscard]] Segment& segment() const { return const_cast<Segment&>(memory->segment); }
  [[nodiscard]] std::unique_ptr<PeerGroupSeat> seat() {
    return ShmSeat::reserve(memory, pool, {.members = 2, .ranks = 2}).value();
  }
  [[nodiscard]] std::uint64_t identity_at(const BoardAddress& address) const {
    const auto* const lines = reinterpret_cast<const slots::StatusLines*>(memory->segment.data() + address.status_lines);
    return lines->identity.value.load(std::memory_order_acquire);
  }
};

BoardAddress address_in(const std::string& announcement) {
  BoardAddress address;
  EXPECT_EQ(announcement.size(), sizeof address);
  std::memcpy(&address, announcement.data(), sizeof address);
  return address;
}

// Another member may have joined the group and waits for the departure of this one.
TEST(ShmSeat, AMemberThatNeverJoinsCountsAsDeparted) {
  Home home;
  std::unique_ptr<PeerGroupSeat> seat = home.seat();
  const BoardAddress address = address_in(seat->announcement());
  EXPECT_NE(address.identity, 0U);
  EXPECT_EQ(home.identity_at(address), address.identity);
  seat.reset();
  EXPECT_EQ(home.identity_at(address), 0U);
}

TEST(ShmSeat, ALaterOwnerOfTheLinesHasAnotherIdentity) {
  Home home;
  std::unique_ptr<PeerGroupSeat> seat = home.seat();
  const BoardAddress first = address_in(seat->announcement());
  seat.reset();
  seat = home.seat();
  const BoardAddress second = address_in(seat->announcement());
  EXPECT_EQ(second.status_lines, first.status_lines);
  EXPECT_EQ(second.board, first.board);
  EXPECT_NE(second.identity, first.identity);
  EXPECT_EQ(home.identity_at(first), second.identity);
}

}  // namespace
}  // namespace seto
