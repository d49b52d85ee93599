// Streams over every transport: messages arrive in order, complete, once, for any size, number and depth.

#include <algorithm>
#include <initializer_list>
#include <random>

#include "tests/support/conformance.h"

namespace seto::support {
namespace {

constexpr std::uint64_t kSeed = 20;

StreamGeometry geometry_of(std::uint32_t size, std::uint32_t depth, std::uint64_t slices) {
  return {size, depth, slices, static_cast<std::uint32_t>(mixed(size + mixed(depth + mixed(slices))))};
}

std::vector<std::uint32_t> sizes_of(const PeerGroupTransport& transport) {
  std::vector<std::uint32_t> sizes = {0, 1, 31, 32, 33, 63, 64, 65, 4095, 4096, 4097, 65536};
  for (const std::uint32_t size : transport.boundaries()) sizes.push_back(size);
  return sizes;
}

// A stream from every member to every other.
std::vector<Flow> all_to_all(PeerGroupMember& member, std::size_t peer_group, const StreamGeometry& geometry,
                             std::uint16_t port = 0) {
  std::vector<Flow> flows;
  PeerGroup& c = member.peer_group(peer_group);
  for (std::uint32_t peer = 0; peer < c.members(); ++peer) {
    if (peer == member.index()) continue;
    flows.push_back(sending(c, {member.index(), 0, port}, {peer}, geometry));
    flows.push_back(receiving(c, member.index(), {peer, 0, port}, geometry));
  }
  return flows;
}

using Streams = EveryTransport;
class ChangingReceivers : public EveryTransport {};

// Each geometry opens the streams anew at the same addresses: leases grow and shrink between operations.
TEST_P(Streams, CarryEverySizeDepthAndNumberOfSlices) {
  const std::vector<std::uint32_t> sizes = sizes_of(transport());
  run({}, [&](PeerGroupMember& member) {
    std::uint64_t operation = 0, turn = 0;
    for (const std::uint32_t size : sizes)
      for (std::uint32_t depth = 1; depth <= 4; ++depth)
        for (const std::uint64_t slices : {1U, 2U, 3U, 9U}) {
          if ((++turn + depth) % kEvery != 0) continue;
          std::vector<Flow> flows = all_to_all(member, 0, geometry_of(size, depth, slices));
          if (!operate(member.peer_group(), flows, ++operation)) return;
        }
  });
}

// Shared memory keeps the streams of high ports in another way: only plans of many ranks have so many.
TEST_P(Streams, CarryEverySizeOverHighPorts) {
  const std::vector<std::uint32_t> sizes = sizes_of(transport());
  run({.ports = 200}, [&](PeerGroupMember& member) {
    PeerGroup& peer_group = member.peer_group();
    std::vector<std::uint32_t> others;
    for (std::uint32_t peer = 1; peer < peer_group.members(); ++peer) others.push_back(peer);
    std::uint64_t operation = 0, turn = 0;
    for (const std::uint32_t size : sizes)
      for (const std::uint64_t slices : {1U, 9U}) {
        // A sanitizer takes one number of slices for each size, in turn.
        if (const std::uint64_t now = turn++ % 4; kEvery > 1 && (now == 1 || now == 2)) continue;
        const StreamGeometry geometry = geometry_of(size, 2, slices);
        std::vector<Flow> flows;
        for (const std::uint16_t port : std::initializer_list<std::uint16_t>{63, 64, 65, 199})
          for (Flow& flow : all_to_all(member, 0, geometry, port)) flows.push_back(std::move(flow));
        for (const std::uint16_t port : std::initializer_list<std::uint16_t>{64, 199})
          flows.push_back(member.index() == 0 ? sending(peer_group, {0, 2, port}, others, geometry)
                                              : receiving(peer_group, member.index(), {0, 2, port}, geometry));
        if (!operate(peer_group, flows, ++operation)) return;
      }
  });
}

TEST_P(Streams, KeepTheirOrderOverManySlices) {
  run({}, [&](PeerGroupMember& member) {
    for (std::uint64_t operation = 1; operation <= 4; ++operation) {
      std::vector<Flow> flows =
          all_to_all(member, 0, geometry_of(100, static_cast<std::uint32_t>(operation), repetitions(8'000, 600) / members()));
      if (!operate(member.peer_group(), flows, operation)) return;
    }
  });
}

// Streams of several shapes share their addresses, as cached launches do; windows are reused all the time.
TEST_P(Streams, AreReusedOverThousandsOfOperations) {
  run({}, [&](PeerGroupMember& member) {
    std::vector<std::vector<Flow>> shapes;
    for (const auto& geometry : {geometry_of(8, 2, 1), geometry_of(200, 2, 1), geometry_of(3000, 1, 3), geometry_of(3000, 4, 7)})
      shapes.push_back(all_to_all(member, 0, geometry));
    std::mt19937_64 random(kSeed);  // the same choices on every member
    for (std::uint64_t operation = 1; operation <= repetitions(5'000, 1'500) / members(); ++operation)
      if (!operate(member.peer_group(), shapes[random() % shapes.size()], operation)) return;
  });
}

// Two operations may be in flight, and messages of both may be held at the same time.
TEST_P(Streams, ServeTwoOperationsAtOnce) {
  run({}, [&](PeerGroupMember& member) {
    PeerGroup& peer_group = member.peer_group();
    for (const std::uint32_t size : {8U, 300U, 5000U}) {
      const std::uint64_t first = size == 8 ? 1 : size == 300 ? 101 : 201;
      std::vector<Flow> even = all_to_all(member, 0, geometry_of(size, 2, 1));
      for (std::uint64_t operation = first; operation < first + 100; operation += 2) {
        for (std::uint64_t each : {operation, operation + 1}) peer_group.status().begin({each, 0, 0, {}});
        for (Flow& flow : even) {
          if (flow.send == nullptr) continue;
          std::byte* slots[2] = {};
          ASSERT_TRUE(eventually([&] { return (slots[0] = flow.send->acquire(mark_of(operation, 0))) != nullptr; }));
          ASSERT_TRUE(eventually([&] { return (slots[1] = flow.send->acquire(mark_of(operation + 1, 0))) != nullptr; }));
          for (std::uint64_t i : {0U, 1U}) write_pattern(slots[i], size, flow.key_of(mark_of(operation + i, 0)));
          flow.send->commit(mark_of(operation + 1, 0), size);
          flow.send->commit(mark_of(operation, 0), size);
        }
        for (Flow& flow : even) {
          if (flow.receive == nullptr) continue;
          const std::byte* messages[2] = {};
          ASSERT_TRUE(eventually([&] { return (messages[0] = flow.receive->front(mark_of(operation, 0))) != nullptr; }))
              << peer_group.failure().text();
          ASSERT_TRUE(eventually([&] { return (messages[1] = flow.receive->front(mark_of(operation + 1, 0))) != nullptr; }));
          for (std::uint64_t i : {0U, 1U})
            EXPECT_TRUE(has_pattern(messages[i], size, flow.key_of(mark_of(operation + i, 0)))) << size;
        }
        peer_group.complete(operation + 1);
      }
    }
  });
}

// One slot serves all receivers; a slow receiver delays its reuse.
TEST_P(Streams, MulticastToReceiversOfDifferentSpeed) {
  run({}, [&](PeerGroupMember& member) {
    PeerGroup& peer_group = member.peer_group();
    std::mt19937_64 random(kSeed + member.index());
    for (std::uint64_t operation = 1; operation <= repetitions(100, 20); ++operation) {
      const auto sender = static_cast<std::uint32_t>(operation % peer_group.members());
      const StreamGeometry geometry = geometry_of(operation % 3 == 0 ? 16 : 700, 1 + operation % 4, operation % 3 == 0 ? 1 : 20);
      std::vector<std::uint32_t> receivers;
      for (std::uint32_t peer = 0; peer < peer_group.members(); ++peer)
        if (peer != sender) receivers.push_back(peer);
      std::vector<Flow> flows;
      if (member.index() == sender) {
        flows.push_back(sending(peer_group, {sender, 1, 3}, receivers, geometry));
      } else {
        flows.push_back(receiving(peer_group, member.index(), {sender, 1, 3}, geometry));
        if (random() % 4 == 0)  // starts late
          for (std::uint64_t turns = random() % 2000; turns > 0; --turns) sched_yield();
      }
      if (!operate(peer_group, flows, operation)) return;
    }
  });
}

// A multicast group may have other receivers in the next operation: messages that the first receivers still read stay.
TEST_P(ChangingReceivers, GetTheirOwnMulticasts) {
  run({}, [&](PeerGroupMember& member) {
    PeerGroup& peer_group = member.peer_group();
    for (std::uint64_t operation = 1; operation <= 2000 / kLess; ++operation) {
      std::vector<std::uint32_t> receivers;
      for (std::uint32_t peer = 1; peer < peer_group.members(); ++peer)
        if (operation % 5 < 2 || peer % 2 == operation / 2 % 2) receivers.push_back(peer);
      const StreamGeometry geometry = geometry_of(operation % 7 < 3 ? 20 : 3000, 2, 1);
      std::vector<Flow> flows;
      if (member.index() == 0) {
        flows.push_back(sending(peer_group, {0, 2, 1}, receivers, geometry));
      } else if (std::find(receivers.begin(), receivers.end(), member.index()) != receivers.end()) {
        flows.push_back(receiving(peer_group, member.index(), {0, 2, 1}, geometry));
      }
      if (!operate(peer_group, flows, operation)) return;
    }
  });
}

TEST_P(Streams, OfSeveralPeerGroupsShareOnePool) {
  run({.peer_groups = 4}, [&](PeerGroupMember& member) {
    for (std::size_t which = 0; which < 4; ++which) {
      std::vector<Flow> flows = all_to_all(member, which, geometry_of(1000 + static_cast<std::uint32_t>(which) * 5000, 2, 4));
      for (Flow& flow : flows) flow.key += which * 31337;
      for (std::uint64_t operation = 1; operation <= 5; ++operation)
        if (!operate(member.peer_group(which), flows, operation)) return;
    }
    std::vector<std::vector<Flow>> flows;
    for (std::size_t which = 0; which < 4; ++which) flows.push_back(all_to_all(member, which, geometry_of(9000, 3, 5)));
    for (std::uint64_t operation = 6; operation <= 60;
         ++operation)  // one after another: members are in different groups at one time
      for (std::size_t turn = 0; turn < 4; ++turn)
        if (!operate(member.peer_group(turn), flows[turn], operation)) return;
    EXPECT_EQ(member.leased() > 0, member.shares_memory());
  });
}

// Three and five members run no other code, so sanitizers leave them out.
INSTANTIATE_TEST_SUITE_P(All, Streams,
                         every_transport(kLess > 1 ? std::vector<std::uint32_t>{2, 4} : std::vector<std::uint32_t>{2, 3, 4, 5}),
                         name_of_both);
INSTANTIATE_TEST_SUITE_P(All, ChangingReceivers, every_transport({3, 5}), name_of_both);

}  // namespace
}  // namespace seto::support
