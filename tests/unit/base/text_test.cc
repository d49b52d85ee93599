#include "src/base/text.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <iostream>
#include <limits>
#include <random>
#include <string>

namespace seto {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

TEST(ParseUint, AcceptsOnlyDigits) {
  EXPECT_EQ(parse_uint("0"), 0U);
  EXPECT_EQ(parse_uint("007"), 7U);
  EXPECT_EQ(parse_uint("18446744073709551615"), kMost);
  for (const char* wrong : {"", " 1", "1 ", "+1", "-1", "1.5", "0x10", "abc", "18446744073709551616"}) {
    EXPECT_EQ(parse_uint(wrong), std::nullopt) << wrong;
  }
}

TEST(ParseSize, KnowsItsUnits) {
  EXPECT_EQ(parse_size("8"), 8U);
  EXPECT_EQ(parse_size("8B"), 8U);
  EXPECT_EQ(parse_size("1k"), 1024U);
  EXPECT_EQ(parse_size("64M"), 64U << 20);
  EXPECT_EQ(parse_size("64MB"), 64U << 20);
  EXPECT_EQ(parse_size("64MiB"), 64U << 20);
  EXPECT_EQ(parse_size("2g"), std::uint64_t{2} << 30);
  EXPECT_EQ(parse_size("1T"), std::uint64_t{1} << 40);
}

TEST(ParseSize, RejectsInvalidSizes) {
  for (const char* wrong : {"", "M", "64X", "64MM", "64Mb", "6.4M", "-1", "64 M", "1E", "KiB", "iB"}) {
    EXPECT_EQ(parse_size(wrong), std::nullopt) << wrong;
  }
}

TEST(ParseSize, RejectsOverflow) {
  EXPECT_EQ(parse_size("16777215T"), std::uint64_t{16777215} << 40);
  EXPECT_EQ(parse_size("16777216T"), std::nullopt);
  EXPECT_EQ(parse_size("18446744073709551615K"), std::nullopt);
}

TEST(SizeText, IsShortest) {
  EXPECT_EQ(size_text(0), "0");
  EXPECT_EQ(size_text(1000), "1000");
  EXPECT_EQ(size_text(1024), "1K");
  EXPECT_EQ(size_text(1536 * 1024), "1536K");
  EXPECT_EQ(size_text(64U << 20), "64M");
}

TEST(SizeText, IsReadBackExactly) {
  const std::uint64_t seed = std::random_device()();
  std::cout << "seed " << seed << '\n';
  std::mt19937_64 random(seed);
  for (int round = 0; round < 1000; ++round) {
    const std::uint64_t size = (random() >> (random() % 64)) << (random() % 41);
    EXPECT_EQ(parse_size(size_text(size)), size);
  }
}

TEST(EditDistance, CountsSingleEdits) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("ring", "ring"), 0U);
  EXPECT_EQ(edit_distance("", "ring"), 4U);
  EXPECT_EQ(edit_distance("ring", "rings"), 1U);
  EXPECT_EQ(edit_distance("ring", "rng"), 1U);
  EXPECT_EQ(edit_distance("ring", "rang"), 1U);
  EXPECT_EQ(edit_distance("ring", "rnig"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(EditDistance, IsSymmetric) {
  EXPECT_EQ(edit_distance("SETO_SLOT_DEPTH", "SETO_SLTO_DEPT"), edit_distance("SETO_SLTO_DEPT", "SETO_SLOT_DEPTH"));
  EXPECT_EQ(edit_distance("abcdef", "badcfe"), 3U);
  EXPECT_EQ(edit_distance("badcfe", "abcdef"), 3U);
}

TEST(Nearest, FindsTheTypo) {
  constexpr std::array<std::string_view, 3> kNames = {"direct", "ring", "tree"};
  EXPECT_EQ(nearest("rign", kNames), "ring");
  EXPECT_EQ(nearest("driect", kNames), "direct");
}

TEST(Nearest, PrefersNamesThatBeginWithTheText) {
  constexpr std::array<std::string_view, 4> kNames = {"LOG", "LOG_FILE", "ALGORITHM", "SPIN"};
  EXPECT_EQ(nearest("ALGO", kNames), "ALGORITHM") << "two edits from LOG";
  EXPECT_EQ(nearest("LOG_FIEL", kNames), "LOG_FILE") << "a typo counts more than a common beginning";
  EXPECT_EQ(nearest("LOG_LEVEL", kNames), "LOG");
  EXPECT_EQ(nearest("LOG_", kNames), "LOG_FILE");
  EXPECT_EQ(nearest("AL", kNames), "") << "too short for a suggestion";
}

TEST(Escaped, ShowsEveryByteThatIsNotPrintable) {
  EXPECT_EQ(escaped("plain text ~"), "plain text ~");
  EXPECT_EQ(escaped(std::string_view("\033[31m\n\0\x7f\xc3\xa9", 10)), "\\x1b[31m\\x0a\\x00\\x7f\\xc3\\xa9");
  EXPECT_EQ(escaped(""), "");
}

TEST(LowerCase, ChangesLettersOnly) { EXPECT_EQ(lower_case("One_SHOT-4[Z"), "one_shot-4[z"); }

TEST(Nearest, IsEmptyWithoutASimilarName) {
  constexpr std::array<std::string_view, 2> kNames = {"ring", "tree"};
  EXPECT_EQ(nearest("hierarchical", kNames), "");
  EXPECT_EQ(nearest("ring", {}), "");
}

}  // namespace
}  // namespace seto
