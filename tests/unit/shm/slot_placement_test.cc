#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "transports/shm/contexts_of_process.h"
#include "transports/shm/shm_connection.h"
#include "transports/shm/shm_seat.h"

// Members of one peer group that take themselves to be on different NUMA nodes: the node on which each lets its slots be placed.
namespace seto {
namespace {

constexpr ContextId kFirstContext = 4'000'000'000;  // contexts that no other test has

// Two nodes, of which one has all cores of this thread; or one node.
NumaNodes nodes_with_this_thread_on(int node, const char* nodes = "0-1") {
  return NumaNodes([&](const std::string& name) -> std::string {
    if (name == "has_memory") return nodes;
    return name == "node" + std::to_string(node) + "/cpulist" ? "0-8191" : "";
  });
}

struct Placed {
  std::size_t begin = 0;
  std::size_t size = 0;
  int node = slots::kAnyNode;
};

// One member with a context of its own.
struct Home {
  explicit Home(NumaNodes own_nodes) : nodes(std::move(own_nodes)) {}

  // Where these bytes of a stream are placed.
  [[nodiscard]] int node_of(const std::byte* slot) const {
    const auto offset = static_cast<std::size_t>(slot - memory->segment.data());
    for (const Placed& each : placed)
      if (each.begin <= offset && offset < each.begin + each.size) return each.node;
    return slots::kAnyNode;
  }

  NumaNodes nodes;
  std::vector<Placed> placed;
  std::shared_ptr<ContextMemory> memory =
      std::make_shared<ContextMemory>(ContextMemory{Segment::create({std::uint64_t{1} << 30}).value(), nullptr});
  slots::Pool pool{kMemoryHeadSize,
                   memory->segment.size(),
                   [this](std::size_t offset, std::size_t size) { return memory->segment.populate(offset, size); },
                   [this](std::size_t offset, std::size_t size) { return memory->segment.release(offset, size); },
                   std::size_t{1} << 30,
                   [this](std::size_t offset, std::size_t size, int node) {
                     placed.push_back({offset, size, node});
                   }};
  std::unique_ptr<PeerGroupSeat> seat;
  std::shared_ptr<PeerGroup> group;
};

class SlotPlacement : public ::testing::Test {
 protected:
  void join(std::vector<NumaNodes> nodes) {
    const int members = static_cast<int>(nodes.size());
    for (NumaNodes& each : nodes) homes_.push_back(std::make_unique<Home>(std::move(each)));
    for (std::size_t i = 0; i < homes_.size(); ++i) {
      Home& home = *homes_[i];
      ASSERT_TRUE(home.memory->segment.populate(0, kMemoryHeadSize).ok());
      ContextsOfProcess::instance().add(kFirstContext + i, home.memory);
      home.seat = ShmSeat::reserve(home.memory, home.pool, {.members = members, .ranks = members}, home.nodes).value();
    }
    for (std::size_t own = 0; own < homes_.size(); ++own) {
      GroupMembers all;
      all.own = static_cast<std::uint32_t>(own);
      for (std::size_t i = 0; i < homes_.size(); ++i) {
        GroupMember& one = all.members.emplace_back();
        if (i != own) one.connection = ShmConnection::within({"", kFirstContext + i, 0}).value();
        one.seat = homes_[i]->seat->announcement();
        one.number = static_cast<std::uint32_t>(i);
      }
      homes_[own]->group = homes_[own]->seat->join(std::move(all)).value();
    }
  }
  ~SlotPlacement() override {
    for (std::size_t i = 0; i < homes_.size(); ++i) ContextsOfProcess::instance().remove(kFirstContext + i);
    for (const auto& home : homes_) home->group.reset();
  }

  // The node of the slot in which the first message of such a stream lies.
  int node_of_stream(std::uint32_t sender, std::uint8_t group, std::vector<std::uint32_t> receivers) {
    const StreamAddress address{sender, group, ++port_};
    const auto stream = homes_[sender]->group->open_send(address, receivers, {.slot_size = 64 << 10}).value();
    const std::byte* const slot = stream->acquire(mark_of(1, 0));
    EXPECT_NE(slot, nullptr);
    return homes_[sender]->node_of(slot);
  }

  std::vector<std::unique_ptr<Home>> homes_;
  std::uint16_t port_ = 0;
};

TEST_F(SlotPlacement, ASlotLiesOnTheNodeOfItsReader) {
  join({nodes_with_this_thread_on(0), nodes_with_this_thread_on(1), nodes_with_this_thread_on(1)});
  EXPECT_EQ(node_of_stream(0, 0, {1}), 1);
  EXPECT_EQ(node_of_stream(1, 0, {0}), 0);
  EXPECT_EQ(node_of_stream(1, 0, {2}), 1);
  EXPECT_EQ(node_of_stream(0, 1, {1, 2}), 1) << "all readers of a multicast are there";
  const std::size_t before = homes_[1]->placed.size();
  EXPECT_EQ(node_of_stream(1, 1, {0, 2}), slots::kAnyNode) << "its readers are on two nodes";
  EXPECT_EQ(homes_[1]->placed.size(), before);
}

TEST_F(SlotPlacement, MessagesOfTwoMembersLieOnTheNodeOfTheReader) {
  join({nodes_with_this_thread_on(0), nodes_with_this_thread_on(1)});
  const auto sender = homes_[0]->group->open_pair_send(1).value();
  const PairPiece piece = sender->acquire({.size = 1 << 20});
  ASSERT_EQ(piece.state, PairPiece::State::ready);
  EXPECT_EQ(homes_[0]->node_of(piece.data), 1);
}

TEST_F(SlotPlacement, NothingIsAskedOnAMachineWithOneNode) {
  join({nodes_with_this_thread_on(0, "0"), nodes_with_this_thread_on(0, "0")});
  EXPECT_EQ(node_of_stream(0, 0, {1}), slots::kAnyNode);
  EXPECT_TRUE(homes_[0]->placed.empty());
}

// A member that runs on any core, and one that states a node that this machine does not have.
TEST_F(SlotPlacement, NothingIsAskedForAReaderWithoutANode) {
  join({nodes_with_this_thread_on(0), nodes_with_this_thread_on(5), nodes_with_this_thread_on(7, "0,7")});
  EXPECT_EQ(node_of_stream(0, 0, {1}), slots::kAnyNode);
  EXPECT_EQ(node_of_stream(0, 0, {2}), slots::kAnyNode);
  EXPECT_EQ(node_of_stream(1, 0, {0}), 0);
  EXPECT_TRUE(homes_[0]->placed.empty());
}

}  // namespace
}  // namespace seto
