// The first words on a path that continues a connection: they come back, and malformed or stale ones are refused.

#include "transports/resume/hello.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "tests/support/seed.h"

namespace seto::resume {
namespace {

Hello some_hello() {
  Hello hello{11, 22, 33, 4, 1, {}};
  hello.heard.all_up_to = 100;
  hello.heard.count = 2;
  hello.heard.ranges[0] = {102, 104};
  hello.heard.ranges[1] = {110, 110};
  return hello;
}

constexpr Expected kExpected{11, 22, 33, 3, 2};

std::vector<std::byte> bytes_of(const Hello& hello) {
  HelloBytes bytes;
  const std::size_t size = encode(hello, bytes);
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)};
}

TEST(Hello, ComesBack) {
  const Hello hello = some_hello();
  const std::vector<std::byte> bytes = bytes_of(hello);
  const Result<std::size_t> length = length_of_hello(std::span(bytes).first(kHelloFixed + 16));
  ASSERT_TRUE(length.ok()) << length.status().text();
  EXPECT_EQ(length.value(), bytes.size());
  const Result<Hello> back = decode_hello(bytes);
  ASSERT_TRUE(back.ok()) << back.status().text();
  EXPECT_EQ(back.value().link, hello.link);
  EXPECT_EQ(back.value().sender, hello.sender);
  EXPECT_EQ(back.value().receiver, hello.receiver);
  EXPECT_EQ(back.value().attempt, hello.attempt);
  EXPECT_EQ(back.value().path, hello.path);
  EXPECT_EQ(back.value().heard.all_up_to, 100U);
  ASSERT_EQ(back.value().heard.count, 2U);
  EXPECT_EQ(back.value().heard.ranges[1].first, 110U);
  EXPECT_TRUE(admit(back.value(), kExpected).ok());
}

TEST(Hello, WhatDoesNotContinueTheConnectionIsRefused) {
  const auto refused = [](void (*change)(Hello&)) {
    Hello hello = some_hello();
    change(hello);
    return !admit(hello, kExpected).ok();
  };
  EXPECT_TRUE(refused([](Hello& hello) { hello.link = 12; }));
  EXPECT_TRUE(refused([](Hello& hello) { hello.sender = 23; })) << "the peer started again";
  EXPECT_TRUE(refused([](Hello& hello) { hello.receiver = 34; })) << "the peer means an earlier context here";
  EXPECT_TRUE(refused([](Hello& hello) { hello.path = 2; }));
  EXPECT_TRUE(refused([](Hello& hello) { hello.attempt = 3; })) << "a hello that was late, or is a repetition";
  EXPECT_FALSE(refused([](Hello& hello) { hello.attempt = 9; })) << "attempts between may have failed";
}

TEST(Hello, EveryShorterOrLongerFormIsRefused) {
  std::vector<std::byte> bytes = bytes_of(some_hello());
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(decode_hello(std::span(bytes).first(size)).ok()) << size;
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(decode_hello(bytes).ok());
}

TEST(Hello, AlteredBytesNeverReadBeyondTheEnd) {
  std::mt19937_64 random(testing::chosen_seed());
  const std::vector<std::byte> good = bytes_of(some_hello());
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes = good;
    for (std::size_t changes = 1 + random() % 4; changes > 0; --changes)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    bytes.resize(random() % (bytes.size() + 1));
    bytes.shrink_to_fit();
    const Result<Hello> read = decode_hello(bytes);
    if (read.ok()) {
      EXPECT_LE(read.value().heard.count, Heard::kMostRanges);
    }
    if (const Result<std::size_t> length = length_of_hello(bytes); length.ok()) {
      EXPECT_LE(length.value(), kLongestHello);
    }
  }
}

}  // namespace
}  // namespace seto::resume
