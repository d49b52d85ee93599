// An acknowledgement as bytes: every value comes back, and malformed bytes are refused.

#include "transports/resume/heard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "tests/support/seed.h"

namespace seto::resume {
namespace {

Heard random_heard(std::mt19937_64& random) {
  Heard heard;
  heard.all_up_to = random() >> (1 + random() % 63);
  std::uint64_t before = heard.all_up_to;
  for (std::size_t count = random() % (Heard::kMostRanges + 1); heard.count < count; ++heard.count) {
    const std::uint64_t first = before + 2 + random() % 1'000;
    heard.ranges[heard.count] = {first, first + random() % 1'000};
    before = heard.ranges[heard.count].last;
  }
  return heard;
}

std::vector<std::byte> bytes_of(const Heard& heard) {
  HeardBytes bytes;
  const std::size_t size = encode(heard, bytes);
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)};
}

// The smallest Heard with one range, with three of its fields replaced.
std::vector<std::byte> altered(std::uint64_t count, std::uint32_t distance, std::uint32_t length) {
  Heard heard;
  heard.all_up_to = 5;
  heard.count = 1;
  heard.ranges[0] = {8, 9};
  std::vector<std::byte> bytes = bytes_of(heard);
  std::memcpy(bytes.data() + 8, &count, sizeof count);
  std::memcpy(bytes.data() + 16, &distance, sizeof distance);
  std::memcpy(bytes.data() + 20, &length, sizeof length);
  return bytes;
}

TEST(Heard, EveryValueComesBack) {
  std::mt19937_64 random(testing::chosen_seed());
  for (int round = 0; round < 1'000; ++round) {
    const Heard heard = random_heard(random);
    const Result<Heard> back = decode_heard(bytes_of(heard));
    ASSERT_TRUE(back.ok()) << back.status().text();
    ASSERT_EQ(back.value().all_up_to, heard.all_up_to);
    ASSERT_EQ(back.value().count, heard.count);
    for (std::size_t i = 0; i < heard.count; ++i) {
      ASSERT_EQ(back.value().ranges[i].first, heard.ranges[i].first);
      ASSERT_EQ(back.value().ranges[i].last, heard.ranges[i].last);
    }
    ASSERT_EQ(back.value().last(), heard.last());
  }
}

TEST(Heard, MalformedBytesAreRefused) {
  ASSERT_TRUE(decode_heard(altered(1, 3, 2)).ok());
  EXPECT_FALSE(decode_heard(altered(1, 0, 2)).ok()) << "a range that overlaps what is before it";
  EXPECT_FALSE(decode_heard(altered(1, 1, 2)).ok()) << "a range without a gap before it";
  EXPECT_FALSE(decode_heard(altered(1, 3, 0)).ok()) << "an empty range";
  EXPECT_FALSE(decode_heard(altered(0, 3, 2)).ok()) << "bytes behind the last range";
  EXPECT_FALSE(decode_heard(altered(2, 3, 2)).ok()) << "fewer ranges than announced";
  EXPECT_FALSE(decode_heard(altered(Heard::kMostRanges + 1, 3, 2)).ok());
  EXPECT_FALSE(decode_heard(altered(~std::uint64_t{0}, 3, 2)).ok()) << "a size that overflows";
  EXPECT_FALSE(decode_heard({}).ok());
  Heard late;
  late.all_up_to = ~std::uint64_t{0};
  EXPECT_FALSE(decode_heard(bytes_of(late)).ok()) << "the sum of a range would overflow";
}

TEST(Heard, AlteredBytesAreRefusedOrAscending) {
  std::mt19937_64 random(testing::chosen_seed());
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes = bytes_of(random_heard(random));
    for (std::size_t changes = 1 + random() % 3; changes > 0; --changes)
      bytes[random() % std::min<std::size_t>(bytes.size(), 40)] = static_cast<std::byte>(random());
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    const Result<Heard> read = decode_heard(bytes);
    if (!read.ok()) continue;
    std::uint64_t before = read.value().all_up_to;
    for (const NumberRange& range : read.value().beyond()) {
      ASSERT_GT(range.first, before + 1);
      ASSERT_GE(range.last, range.first);
      before = range.last;
    }
  }
}

}  // namespace
}  // namespace seto::resume
