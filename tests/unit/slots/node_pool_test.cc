#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "transports/slots/pool.h"

// The slots of a machine with several NUMA nodes: a pool without memory, which notes what it asks of the system.
namespace seto::slots {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kHead = 4096;
constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Placed {
  std::size_t begin = 0;
  std::size_t size = 0;
  int node = kAnyNode;

  [[nodiscard]] bool has(std::size_t offset, std::size_t bytes) const {
    return begin <= offset && offset + bytes <= begin + size;
  }
};

struct Machine {
  explicit Machine(std::size_t size, std::size_t limit = ~std::size_t{0})
      : pool(
            kHead, size,
            [this](std::size_t offset, std::size_t bytes) {
              if (refuses) return failure(Code::unavailable, "no memory");
              populated.push_back({offset, bytes});
              return Status();
            },
            [](std::size_t, std::size_t) { return Status(); }, limit,
            [this](std::size_t offset, std::size_t bytes, int node) {
              for (const Placed& page : populated)
                EXPECT_FALSE((Placed{offset, bytes}.has(page.begin, 1))) << "it exists already";
              placed.push_back({offset, bytes, node});
            }) {}

  // The node of which the pages of these addresses come.
  [[nodiscard]] int node_of(std::size_t offset, std::size_t bytes) const {
    for (const Placed& each : placed)
      if (each.has(offset, bytes)) return each.node;
    return kAnyNode;
  }

  std::vector<Placed> placed;
  std::vector<Placed> populated;
  bool refuses = false;
  Pool pool;
};

TEST(NodePool, SlotsLieInRangesOfTheirNode) {
  Machine machine(std::size_t{4} << 30);
  std::vector<Placed> leased;
  for (int i = 0; i < 300; ++i) {
    const int node = i % 3;
    const std::size_t size = std::size_t{4096} << i % 7;
    const std::size_t offset = machine.pool.lease(size, node).value();
    EXPECT_EQ(machine.node_of(offset, size), node) << i;
    const std::size_t board = machine.pool.reserve(10'000).value();
    EXPECT_EQ(machine.node_of(board, 10'000), kAnyNode) << "a board";
    for (const Placed& other : leased)
      ASSERT_TRUE(offset + size <= other.begin || other.begin + other.size <= offset) << "two leases overlap";
    leased.push_back({offset, size, node});
  }
  EXPECT_EQ(machine.placed.size(), 3U) << "one range for each node";
  for (const Placed& each : machine.placed) EXPECT_EQ(each.size, kNodeRange);
  EXPECT_EQ(machine.populated.size(), 300U);
}

TEST(NodePool, ALargerLeaseThanARangeHasARangeOfItsOwn) {
  Machine machine(std::size_t{4} << 30);
  (void)machine.pool.lease(4096, 1).value();
  const std::size_t large = machine.pool.lease(2 * kNodeRange, 1).value();
  EXPECT_EQ(machine.node_of(large, 2 * kNodeRange), 1);
  EXPECT_EQ(machine.placed.size(), 2U);
  (void)machine.pool.lease(4096, 1).value();
  EXPECT_EQ(machine.placed.size(), 2U) << "the first range has room";
}

// A machine with one node, and members that may run on several.
TEST(NodePool, AnyNodeAsksNothingOfTheSystem) {
  Machine machine(std::size_t{1} << 30);
  const std::size_t first = machine.pool.lease(4096).value();
  EXPECT_EQ(first, kHead);
  EXPECT_EQ(machine.pool.lease(10'000).value(), kHead + 4096) << "one after another";
  machine.pool.give_back(first, 4096);
  EXPECT_EQ(machine.pool.lease(4096).value(), first);
  EXPECT_TRUE(machine.placed.empty());
}

TEST(NodePool, ReturnedSlotsServeTheirOwnNode) {
  Machine machine(std::size_t{1} << 30);
  const std::size_t of_0 = machine.pool.lease(8192, 0).value();
  machine.pool.give_back(of_0, 8192);
  const std::size_t of_1 = machine.pool.lease(8192, 1).value();
  EXPECT_EQ(machine.node_of(of_1, 8192), 1);
  EXPECT_EQ(machine.pool.lease(8192, 0).value(), of_0);
  machine.pool.give_back(of_1, 8192);
  EXPECT_EQ(machine.pool.lease(8192).value(), of_1) << "a reader without a node takes what is there";
  EXPECT_EQ(machine.pool.leased(), 2 * 8192U);
}

TEST(NodePool, SlotsOfAnotherNodeServeWhereTheLimitIsReached) {
  Machine machine(std::size_t{1} << 30, kHead + 64 * 1024);
  const std::size_t of_0 = machine.pool.lease(64 * 1024, 0).value();
  EXPECT_THAT(std::string(machine.pool.lease(64 * 1024, 1).status().text()), HasSubstr("SETO_SHARED_MEMORY_LIMIT"));
  machine.pool.give_back(of_0, 64 * 1024);
  EXPECT_EQ(machine.pool.lease(64 * 1024, 1).value(), of_0);
  machine.pool.give_back(of_0, 64 * 1024);
  EXPECT_EQ(machine.pool.lease(64 * 1024, 0).value(), of_0) << "its pages lie on node 0, also after a lease for node 1";
}

TEST(NodePool, AnotherNodeServesWhereMemoryIsShort) {
  Machine machine(std::size_t{1} << 30);
  const std::size_t of_0 = machine.pool.lease(4096, 0).value();
  machine.pool.give_back(of_0, 4096);
  machine.refuses = true;
  EXPECT_EQ(machine.pool.lease(4096, 1).value(), of_0);
  EXPECT_THAT(std::string(machine.pool.lease(4096, 1).status().text()), HasSubstr("no memory"));
  machine.refuses = false;
  const std::size_t of_1 = machine.pool.lease(4096, 1).value();
  EXPECT_EQ(of_1, machine.placed.back().begin) << "what could not be populated is tried again";
}

TEST(NodePool, EveryAddressServesBeforeALeaseFails) {
  Machine machine(8 * kMiB);
  std::size_t leased = 0;
  int others = 0;
  for (int i = 0;; ++i) {
    const Result<std::size_t> offset = machine.pool.lease(64 * 1024, i % 2);
    if (!offset.ok()) break;
    others += machine.node_of(offset.value(), 64 * 1024) != i % 2 ? 1 : 0;
    leased += 64 * 1024;
  }
  EXPECT_GT(leased + 2 * 64 * 1024, 8 * kMiB - kHead - 64 * 1024) << "less than a slot is left, in each of two places";
  EXPECT_LT(others, 16) << "of " << leased / (64 * 1024);
}

TEST(NodePool, RoomOfAnotherNodeServesWhereTheSegmentIsFull) {
  Machine machine(8 * kMiB);
  const std::size_t of_0 = machine.pool.lease(4096, 0).value();
  ASSERT_TRUE(machine.pool.reserve(8 * kMiB - kHead - machine.placed.front().size).ok()) << "all that is left";
  EXPECT_EQ(machine.pool.lease(4096, 1).value(), of_0 + 4096);
  EXPECT_EQ(machine.pool.lease(4096).value(), of_0 + 2 * 4096);
  EXPECT_EQ(machine.placed.size(), 1U);
}

TEST(NodePool, ARangeLeavesRoomForBoards) {
  Machine machine(64 * kMiB);
  for (int node = 0; node < 4; ++node) (void)machine.pool.lease(4096, node).value();
  EXPECT_TRUE(machine.pool.reserve(32 * kMiB).ok());
  EXPECT_EQ(machine.placed.size(), 4U);
  for (const Placed& each : machine.placed) EXPECT_EQ(each.begin % 4096 + each.size % 4096, 0U);
}

}  // namespace
}  // namespace seto::slots
