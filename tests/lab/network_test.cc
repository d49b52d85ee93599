#include "tests/lab/network.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace seto::lab {
namespace {

constexpr Nanoseconds kMs = 1'000'000;

TEST(Network, AnInvalidCommandChangesNothing) {
  Network network(2, {}, 1);
  EXPECT_FALSE(network.change(0, "0>1 delay=5ms loss=2").ok());
  EXPECT_FALSE(network.change(0, "0>1").ok());
  EXPECT_EQ(network.link(0, 1).model.settings().delay, 0);
  EXPECT_TRUE(network.change(0, "0>1 delay=5ms loss=1%").ok());
  EXPECT_EQ(network.link(0, 1).model.settings().delay, 5'000'000);
  EXPECT_EQ(network.link(1, 0).model.settings().delay, 0);
}

class Collected final : public Network::Sink {
 public:
  void deliver(std::size_t site, const Fragment& fragment, Packet) override {
    sites.push_back(site);
    sizes.push_back(fragment.size);
    offsets.push_back(fragment.offset);
  }
  std::vector<std::size_t> sites, sizes, offsets;
};

std::vector<std::byte> packet_for(int site, std::size_t size) {
  std::vector<std::byte> packet(size);
  packet[0] = std::byte{0x45};
  packet[16] = std::byte{10};
  packet[17] = std::byte{77};
  packet[18] = static_cast<std::byte>(site);
  return packet;
}

TEST(Network, PacketsArriveWhenDueAtTheirDestination) {
  Network network(3, {.delay = 100}, 1);
  Collected collected;
  EXPECT_EQ(network.next_due(), kFarAway);
  network.enter(0, 0, {}, packet_for(2, 60));
  network.enter(10, 1, {}, packet_for(0, 70));
  network.enter(20, 1, {}, packet_for(1, 80));  // to itself: ignored
  network.enter(20, 1, {}, packet_for(9, 90));  // to no site
  EXPECT_EQ(network.next_due(), 100);
  EXPECT_EQ(network.deliver(99, collected), 0U);
  EXPECT_EQ(network.deliver(105, collected), 1U);
  EXPECT_EQ(network.deliver(130, collected), 1U);
  EXPECT_EQ(collected.sites, (std::vector<std::size_t>{2, 0}));
  EXPECT_EQ(collected.sizes, (std::vector<std::size_t>{60, 70}));
  EXPECT_EQ(network.link(1, 0).lateness.most, 20);
  EXPECT_NE(network.statistics().find("\"1>0\": {\"packets\": 1,"), std::string::npos) << network.statistics();
}

TEST(Network, ACutLosesPacketsInFlightAndAHoleDoesNot) {
  for (const char* change : {"0>1 cut=on", "0>1 hole=on"}) {
    Network network(2, {.delay = 100}, 1);
    Collected collected;
    network.enter(0, 0, {}, packet_for(1, 60));
    ASSERT_TRUE(network.change(50, change).ok());
    network.enter(60, 0, {}, packet_for(1, 60));
    EXPECT_EQ(network.deliver(1000, collected), std::string_view(change) == "0>1 hole=on" ? 1U : 0U) << change;
  }
}

// Over 12 Mbit/s 1500 bytes take 1 ms.
void enter(Network& network, Nanoseconds now, std::size_t from, int to) { network.enter(now, from, {}, packet_for(to, 1500)); }

std::vector<std::size_t> delivered_by(Network& network, Nanoseconds now) {
  Collected collected;
  while (network.deliver(now, collected) > 0) continue;
  return collected.sites;
}

TEST(Network, LinksOfASiteShareItsUplink) {
  Network network(3, {.delay = 5 * kMs}, 1);
  ASSERT_TRUE(network.change(0, "uplink 0 rate=12m").ok());
  enter(network, 0, 0, 1);
  enter(network, 0, 0, 2);
  enter(network, 0, 1, 2);  // the uplink of another site
  EXPECT_EQ(delivered_by(network, 5 * kMs), (std::vector<std::size_t>{2}));
  EXPECT_EQ(delivered_by(network, 6 * kMs - 1), (std::vector<std::size_t>{}));
  EXPECT_EQ(delivered_by(network, 6 * kMs), (std::vector<std::size_t>{1}));
  EXPECT_EQ(network.next_due(), 7 * kMs);
  EXPECT_EQ(delivered_by(network, 7 * kMs), (std::vector<std::size_t>{2}));
}

TEST(Network, ADownlinkServesInOrderOfArrival) {
  Network network(3, {.delay = kMs}, 1);
  ASSERT_TRUE(network.change(0, "0>2 delay=10ms").ok());
  ASSERT_TRUE(network.change(0, "downlink 2 rate=12m bucket=0").ok());
  enter(network, 0, 0, 2);  // reaches the downlink at 10 ms
  enter(network, 8 * kMs, 1, 0);
  enter(network, 9 * kMs, 1, 2);  // at 10 ms too, after the first
  EXPECT_EQ(delivered_by(network, 9 * kMs), (std::vector<std::size_t>{0}));
  EXPECT_EQ(delivered_by(network, 10 * kMs), (std::vector<std::size_t>{}));
  EXPECT_EQ(network.next_due(), 11 * kMs);
  EXPECT_EQ(delivered_by(network, 12 * kMs), (std::vector<std::size_t>{2, 2}));
  EXPECT_EQ(network.link(0, 2).lateness.most, kMs);
  EXPECT_EQ(network.link(1, 2).lateness.most, 0);
}

TEST(Network, ALateCallDoesNotDelayTheDownlink) {
  Network network(2, {.delay = kMs}, 1);
  ASSERT_TRUE(network.change(0, "downlink 1 rate=12m bucket=0").ok());
  enter(network, 0, 0, 1);
  enter(network, 5 * kMs, 0, 1);
  EXPECT_EQ(delivered_by(network, 20 * kMs), (std::vector<std::size_t>{1, 1}));
  EXPECT_EQ(network.link(0, 1).lateness.most, 18 * kMs) << "the first was due at 2 ms, the second at 7 ms";
  EXPECT_EQ(network.link(0, 1).lateness.sum, 31 * kMs);
}

// A downlink as fast as the uplink adds no second delay, and a downlink without a rate adds none at all.
TEST(Network, AnEquallyFastDownlinkAddsNoTime) {
  for (const char* downlink : {"downlink 1 rate=12m", "downlink 1 overhead=0"}) {
    Network network(2, {.delay = kMs}, 1);
    ASSERT_TRUE(network.change(0, "uplink 0 rate=12m").ok());
    ASSERT_TRUE(network.change(0, downlink).ok());
    for (int packet = 0; packet < 100; ++packet) enter(network, 0, 0, 1);
    for (int packet = 1; packet <= 100; ++packet) {
      EXPECT_EQ(delivered_by(network, (packet + 1) * kMs), (std::vector<std::size_t>{1})) << downlink << " " << packet;
    }
  }
}

// Two uplinks send at once: the downlink passes the packets at its rate, and drops those that its queue does not hold.
TEST(Network, ADownlinkHasItsOwnQueue) {
  Network network(3, {}, 1);
  ASSERT_TRUE(network.change(0, "uplink * rate=12m").ok());
  ASSERT_TRUE(network.change(0, "downlink 2 rate=12m bucket=0 queue=4500").ok());
  for (int packet = 0; packet < 10; ++packet) {
    enter(network, 0, 0, 2);
    enter(network, 0, 1, 2);
  }
  const std::size_t delivered = delivered_by(network, 100 * kMs).size();
  EXPECT_EQ(network.access(2).downlink.counters().overflow, 20 - delivered);
  EXPECT_GE(delivered, 12U);
  EXPECT_LE(delivered, 13U) << "10 ms at one packet a millisecond, and three in the queue";
}

TEST(Network, UplinksShareInTheRatioOneToTwoToFour) {
  Network network(4, {.delay = kMs}, 1);
  ASSERT_TRUE(network.change(0, "uplink 0 rate=12m").ok());
  ASSERT_TRUE(network.change(0, "uplink 1 rate=24m").ok());
  ASSERT_TRUE(network.change(0, "uplink 2 rate=48m").ok());
  for (int packet = 0; packet < 200; ++packet) {
    for (std::size_t from = 0; from < 3; ++from) enter(network, 0, from, 3);
  }
  static_cast<void>(delivered_by(network, 21 * kMs));
  EXPECT_EQ(network.link(0, 3).lateness.count, 20U);
  EXPECT_EQ(network.link(1, 3).lateness.count, 40U);
  EXPECT_EQ(network.link(2, 3).lateness.count, 80U);
}

TEST(Network, AnUnsetQueueHoldsTheLongestRoundTripOfTheSite) {
  Network network(3, {.delay = 30 * kMs}, 1);
  ASSERT_TRUE(network.change(0, "uplink 0 rate=1g").ok());
  EXPECT_EQ(queue_limit(network.access(0).uplink.settings()), 7'500'000U);
  ASSERT_TRUE(network.change(0, "0-2 delay=40ms").ok());
  EXPECT_EQ(queue_limit(network.access(0).uplink.settings()), 10'000'000U);
  ASSERT_TRUE(network.change(0, "uplink 0 queue=64K").ok());
  EXPECT_EQ(queue_limit(network.access(0).uplink.settings()), 64U << 10);
}

TEST(Network, InvalidAccessOptionsAreRejectedWithAText) {
  Network network(2, {}, 1);
  for (const char* line : {"uplink 0", "uplink", "uplink 2 rate=1g", "downlink * delay=1ms", "uplink 0 rate=1g loss=1%"}) {
    EXPECT_FALSE(network.change(0, line).ok()) << line;
  }
  EXPECT_EQ(network.access(0).uplink.settings().rate, 0);
}

// The slow uplink splits a TCP packet of ten segments; each part keeps its position in the packet on the rest of the path.
TEST(Network, PartsOfAPacketKeepTheirPosition) {
  constexpr std::size_t kHeader = 40, kSegment = 1000;
  auto packet = packet_for(1, kHeader + 10 * kSegment);
  packet[32] = std::byte{0x50};
  Network network(2, {.delay = kMs}, 1);
  ASSERT_TRUE(network.change(0, "uplink 0 rate=8320k").ok());  // a segment with its header in a millisecond
  ASSERT_TRUE(network.change(0, "downlink 1 rate=8320k").ok());
  network.enter(0, 0, {.kind = OffloadHeader::kTcp4, .header_size = kHeader, .segment_size = kSegment}, packet);
  for (std::size_t segment = 0; segment < 10; ++segment) {
    Collected collected;
    EXPECT_EQ(network.deliver(static_cast<Nanoseconds>(segment + 2) * kMs, collected), 1U);
    EXPECT_EQ(collected.offsets, (std::vector<std::size_t>{kHeader + segment * kSegment}));
    EXPECT_EQ(collected.sizes, (std::vector<std::size_t>{kSegment}));
  }
}

TEST(Network, StatisticsCountSegmentsAndBytesByCodePoint) {
  Network network(2, {}, 1);
  auto packet = packet_for(1, 60);
  network.enter(0, 0, {}, packet);
  packet[1] = std::byte{46 << 2 | 1};  // the lowest bits are of ECN
  network.enter(0, 0, {}, packet);
  network.enter(0, 0, {}, packet);
  auto divided = packet_for(1, 40 + 2500);  // segments of 1000, 1000 and 500 bytes, each with 40 of headers
  divided[1] = std::byte{10 << 2};
  divided[32] = std::byte{0x50};
  network.enter(0, 0, {.kind = OffloadHeader::kTcp4, .header_size = 40, .segment_size = 1000}, divided);
  const std::string text = network.statistics();
  EXPECT_NE(text.find("\"segments_by_dscp\": {\"0\": 1, \"10\": 3, \"46\": 2}"), std::string::npos) << text;
  EXPECT_NE(text.find("\"bytes_by_dscp\": {\"0\": 60, \"10\": 2620, \"46\": 120}"), std::string::npos) << text;
}

TEST(Network, StatisticsNameTheLinksThatWereUsed) {
  Network network(3, {.delay = 30 * kMs}, 1);
  ASSERT_TRUE(network.change(0, "uplink 1 rate=1g").ok());
  enter(network, 0, 1, 2);
  const std::string text = network.statistics();
  EXPECT_NE(text.find("\"round_trip_us\": 60000"), std::string::npos) << text;
  EXPECT_NE(text.find("\"uplinks\": {\"1\": {\"packets\": 1,"), std::string::npos) << text;
  EXPECT_NE(text.find("\"downlinks\": {}"), std::string::npos) << text;
}

}  // namespace
}  // namespace seto::lab
