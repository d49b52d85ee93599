#include "tests/lab/settings.h"

#include <gtest/gtest.h>

#include "tests/lab/network.h"

namespace seto::lab {
namespace {

TEST(Settings, UnitsAreRead) {
  EXPECT_EQ(parse_rate("25m"), 25e6);
  EXPECT_EQ(parse_rate("1g"), 1e9);
  EXPECT_EQ(parse_rate("1.5k"), 1500);
  EXPECT_EQ(parse_duration("5ms"), 5'000'000);
  EXPECT_EQ(parse_duration("0"), 0);
  EXPECT_EQ(parse_duration("250us"), 250'000);
  EXPECT_DOUBLE_EQ(*parse_chance("0.1%"), 0.001);
  EXPECT_EQ(parse_chance("1"), 1);
}

TEST(Settings, WhatIsNotUnderstoodIsRefused) {
  for (const char* text : {"", "m", "-1m", "1x", "1gg", "nan"}) EXPECT_EQ(parse_rate(text), std::nullopt) << text;
  for (const char* text : {"", "5", "-5ms", "61s"}) EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  for (const char* text : {"", "2", "101%", "-1%"}) EXPECT_EQ(parse_chance(text), std::nullopt) << text;
  LinkSettings settings;
  for (const char* text : {"rate", "rate=", "speed=1m", "cut=1", "burst-loss=1", "burst-loss=0.1,0.1,0.1,0.1", "queue=x", ""}) {
    EXPECT_FALSE(set_option(settings, text).ok()) << text;
  }
}

TEST(Settings, OptionsReachTheirField) {
  LinkSettings settings;
  for (const char* option : {"rate=200m", "delay=2ms", "jitter=1ms", "loss=1%", "burst-loss=0.01,0.1,0.5", "queue=256K",
                             "bucket=64K", "overhead=38", "cut=on", "hole=on"}) {
    EXPECT_TRUE(set_option(settings, option).ok()) << option;
  }
  EXPECT_EQ(settings.rate, 200e6);
  EXPECT_EQ(settings.delay, 2'000'000);
  EXPECT_EQ(settings.jitter, 1'000'000);
  EXPECT_EQ(settings.loss, 0.01);
  EXPECT_EQ(settings.burst_loss.enter, 0.01);
  EXPECT_EQ(settings.burst_loss.leave, 0.1);
  EXPECT_EQ(settings.burst_loss.loss, 0.5);
  EXPECT_EQ(settings.queue_bytes, 256U << 10);
  EXPECT_EQ(settings.bucket_bytes, 64U << 10);
  EXPECT_EQ(settings.overhead, 38U);
  EXPECT_TRUE(settings.cut && settings.hole);
  EXPECT_TRUE(set_option(settings, "queue=auto").ok());
  EXPECT_EQ(settings.queue_bytes, std::nullopt);
}

TEST(Settings, PairsAreNamed) {
  const auto count = [](std::string_view text) { return parse_pairs(text, 4).ok() ? parse_pairs(text, 4).value().size() : 0; };
  EXPECT_EQ(count("0>3"), 1U);
  EXPECT_EQ(count("0-3"), 2U);
  EXPECT_EQ(count("*"), 12U);
  for (const char* text : {"", "0", "0>4", "1>1", ">1", "0=1", "**"}) EXPECT_EQ(count(text), 0U) << text;
}

TEST(Network, AChangeThatIsWrongChangesNothing) {
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
  void deliver(std::size_t site, const Delivery& delivery) override {
    sites.push_back(site);
    sizes.push_back(delivery.fragment.size);
  }
  std::vector<std::size_t> sites;
  std::vector<std::size_t> sizes;
};

std::vector<std::byte> packet_for(int site, std::size_t size) {
  std::vector<std::byte> packet(size);
  packet[0] = std::byte{0x45};
  packet[16] = std::byte{10};
  packet[17] = std::byte{77};
  packet[18] = static_cast<std::byte>(site);
  return packet;
}

TEST(Network, PacketsArriveWhenDueAndWhereTheyShould) {
  Network network(3, {.delay = 100}, 1);
  Collected collected;
  EXPECT_EQ(network.next_due(), kFarAway);
  network.enter(0, 0, {}, packet_for(2, 60));
  network.enter(10, 1, {}, packet_for(0, 70));
  network.enter(20, 1, {}, packet_for(1, 80));  // to itself: not our business
  network.enter(20, 1, {}, packet_for(9, 90));  // to nobody
  EXPECT_EQ(network.next_due(), 100);
  EXPECT_EQ(network.deliver(99, collected), 0U);
  EXPECT_EQ(network.deliver(105, collected), 1U);
  EXPECT_EQ(network.deliver(130, collected), 1U);
  EXPECT_EQ(collected.sites, (std::vector<std::size_t>{2, 0}));
  EXPECT_EQ(collected.sizes, (std::vector<std::size_t>{60, 70}));
  EXPECT_EQ(network.link(1, 0).lateness.most, 20);
  EXPECT_NE(network.statistics().find("\"1>0\": {\"packets\": 1,"), std::string::npos) << network.statistics();
}

TEST(Network, ACutLosesWhatIsOnItsWayAndAHoleDoesNot) {
  for (const char* change : {"0>1 cut=on", "0>1 hole=on"}) {
    Network network(2, {.delay = 100}, 1);
    Collected collected;
    network.enter(0, 0, {}, packet_for(1, 60));
    ASSERT_TRUE(network.change(50, change).ok());
    network.enter(60, 0, {}, packet_for(1, 60));
    EXPECT_EQ(network.deliver(1000, collected), std::string_view(change) == "0>1 hole=on" ? 1U : 0U) << change;
  }
}

}  // namespace
}  // namespace seto::lab
