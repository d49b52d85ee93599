#include "transports/tcp/link/receive_buffers.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace seto::tcp {
namespace {

TEST(ReceiveBuffers, AreAlignedAndAsLongAsAsked) {
  ReceiveBuffers buffers;
  for (const std::size_t size : {1U, 255U, 256U, 257U, 100'000U, 1U << 20}) {
    std::byte* const memory = buffers.take(size);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % ReceiveBuffers::kAlignment, 0U) << size;
    std::memset(memory, 1, size);  // a sanitizer finds bytes beyond it
    EXPECT_GE(buffers.in_use(), size);
    EXPECT_LE(buffers.in_use(), std::max<std::size_t>(256, 2 * size));
    buffers.give_back(memory, size);
    EXPECT_EQ(buffers.in_use(), 0U);
  }
}

// It is still in the cache.
TEST(ReceiveBuffers, TheLastOneThatWasGivenBackIsTakenFirst) {
  ReceiveBuffers buffers;
  std::byte* const one = buffers.take(1000);
  std::byte* const other = buffers.take(1000);
  buffers.give_back(one, 1000);
  buffers.give_back(other, 1000);
  EXPECT_EQ(buffers.take(900), other) << "of the same class";
  EXPECT_EQ(buffers.take(1000), one);
  buffers.give_back(one, 1000);
  buffers.give_back(other, 900);
}

TEST(ReceiveBuffers, NoMoreAreInUseThanTheLimit) {
  ReceiveBuffers buffers;
  buffers.set_limit(4096);
  std::vector<std::byte*> taken;
  for (int i = 0; i < 4; ++i) taken.push_back(buffers.take(1024));
  for (std::byte* const each : taken) EXPECT_NE(each, nullptr);
  EXPECT_EQ(buffers.take(1), nullptr);
  buffers.give_back(taken.back(), 1024);
  EXPECT_EQ(buffers.take(1025), nullptr) << "it would need 2,048 bytes";
  std::byte* const again = buffers.take(1024);
  EXPECT_NE(again, nullptr);
  taken.back() = again;
  for (std::byte* const each : taken) buffers.give_back(each, 1024);
  EXPECT_EQ(buffers.in_use(), 0U);
}

TEST(ReceiveBuffers, ALimitThatShrinksBelowWhatIsInUseGivesNothing) {
  ReceiveBuffers buffers;
  std::byte* const memory = buffers.take(8192);
  buffers.set_limit(4096);
  EXPECT_EQ(buffers.take(1), nullptr);
  buffers.give_back(memory, 8192);
  std::byte* const again = buffers.take(4096);
  EXPECT_NE(again, nullptr);
  buffers.give_back(again, 4096);
}

// ---- shares ----

constexpr std::size_t kLimit = std::size_t{1} << 20;

struct Peers {
  explicit Peers(std::size_t count) {
    buffers.set_limit(kLimit);
    for (std::size_t i = 0; i < count; ++i) shares.push_back(std::make_unique<ReceiveShare>(buffers));
  }
  ~Peers() {
    for (const auto& [share, memory] : taken) share->give_back(memory, kPart);
  }
  // Takes parts until it is refused. Returns the bytes that the peer uses then.
  std::size_t take_all(std::size_t peer) {
    while (take(peer)) {
    }
    return shares[peer]->in_use();
  }
  bool take(std::size_t peer) {
    std::byte* const memory = shares[peer]->take(kPart);
    if (memory != nullptr) taken.emplace_back(shares[peer].get(), memory);
    return memory != nullptr;
  }

  static constexpr std::size_t kPart = 1024;
  ReceiveBuffers buffers;
  std::vector<std::unique_ptr<ReceiveShare>> shares;
  std::vector<std::pair<ReceiveShare*, std::byte*>> taken;
};

TEST(ReceiveShare, APeerThatTakesAllItCanLeavesMoreThanItsPartToEachOther) {
  for (const std::size_t count : {1U, 2U, 3U, 8U, 100U}) {
    Peers peers(count);
    const std::size_t assured = kLimit / 2 / count;
    const std::size_t first = peers.take_all(0);
    EXPECT_GT(first, assured + kLimit / 4 - 2 * Peers::kPart) << count << " peers: half of the common half";
    EXPECT_LE(first, assured + kLimit / 4);
    for (std::size_t peer = 1; peer < count; ++peer)
      EXPECT_GE(peers.take_all(peer) + Peers::kPart, assured) << "peer " << peer << " of " << count;
    EXPECT_LE(peers.buffers.in_use(), kLimit);
  }
}

TEST(ReceiveShare, PeersThatUseLittleLeaveTheirPartOfTheOtherHalf) {
  Peers peers(4);
  for (std::size_t round = 0; round < 3 * (kLimit / 4) / 4 / Peers::kPart; ++round)
    for (std::size_t peer = 0; peer < 4; ++peer)
      ASSERT_TRUE(peers.take(peer)) << "three quarters of the limit, in equal parts: round " << round;
}

TEST(ReceiveShare, WhatIsGivenBackCanBeTakenAgain) {
  Peers peers(2);
  const std::size_t most = peers.take_all(0);
  peers.shares[0]->give_back(peers.taken.back().second, Peers::kPart);
  peers.taken.pop_back();
  EXPECT_EQ(peers.take_all(0), most);
}

// A peer that came later is assured of its part, too, unless the limit itself binds.
TEST(ReceiveShare, PartsShrinkWhenPeersComeAndGrowWhenTheyGo) {
  Peers peers(1);
  peers.take_all(0);
  peers.shares.push_back(std::make_unique<ReceiveShare>(peers.buffers));
  EXPECT_FALSE(peers.take(0));
  EXPECT_TRUE(peers.take(1));
  EXPECT_EQ(peers.take_all(1), kLimit / 4) << "its part, and nothing beyond: the first uses that";
  for (int i = 0; i < 2; ++i) {
    peers.taken.front().first->give_back(peers.taken.front().second, Peers::kPart);
    peers.taken.erase(peers.taken.begin());
  }
  EXPECT_FALSE(peers.take(0)) << "it still has more than its part";
}

TEST(ReceiveShare, ChargesCountLikeBuffers) {
  Peers peers(2);
  ReceiveShare& share = *peers.shares[0];
  EXPECT_TRUE(share.charge(kLimit / 4));
  EXPECT_FALSE(share.charge(kLimit / 2));
  EXPECT_EQ(share.in_use(), kLimit / 4);
  EXPECT_EQ(peers.buffers.in_use(), 0U) << "no buffer";
  EXPECT_EQ(peers.take_all(0), kLimit / 2);
  share.discharge(kLimit / 4);
  EXPECT_EQ(share.in_use(), kLimit / 4);
}

TEST(ReceiveShare, ARefusalSaysWhatThePeerUsesAndMayUse) {
  Peers peers(2);
  const std::size_t used = peers.take_all(0);
  const std::string text(peers.shares[0]->refusal(Peers::kPart).text());
  for (const std::size_t number : {used, kLimit, kLimit / 4})
    EXPECT_NE(text.find(std::to_string(number)), std::string::npos) << number << " is missing in: " << text;
  EXPECT_EQ(peers.shares[0]->refusal(Peers::kPart).code(), Code::remote_error);
  EXPECT_EQ(peers.shares[1]->refusal(Peers::kPart).code(), Code::unavailable) << "it may have it: the system has none";
}

}  // namespace
}  // namespace seto::tcp
