#include "tests/lab/settings.h"

#include <gtest/gtest.h>

#include <vector>

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

TEST(Settings, InvalidSettingsAreRejected) {
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
                             "bucket=64K", "overhead=38", "largest=1400", "cut=on", "hole=on", "closed=on"}) {
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
  EXPECT_EQ(settings.largest, 1400U);
  EXPECT_FALSE(set_option(settings, "largest=65536").ok());
  EXPECT_TRUE(settings.cut && settings.hole && settings.closed);
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

TEST(Settings, AnUplinkHasNoOptionsOfPairs) {
  LinkSettings settings;
  for (const char* option : {"rate=1g", "queue=256K", "bucket=64K", "overhead=38"}) {
    EXPECT_TRUE(set_access_option(settings, option).ok()) << option;
  }
  EXPECT_EQ(settings.rate, 1e9);
  for (const char* option : {"delay=1ms", "jitter=1ms", "loss=1%", "cut=on", "hole=on", "rate=x", "rate", ""}) {
    EXPECT_FALSE(set_access_option(settings, option).ok()) << option;
  }
}

TEST(Settings, SitesAreNamed) {
  EXPECT_EQ(parse_sites("*", 3).value(), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(parse_sites("2", 3).value(), (std::vector<std::size_t>{2}));
  for (const char* text : {"", "3", "-1", "0-1", "all"}) EXPECT_FALSE(parse_sites(text, 3).ok()) << text;
}

}  // namespace
}  // namespace seto::lab
