#include "src/base/json_writer.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "tests/support/seed.h"

namespace seto {
namespace {

std::string quoted(std::string_view text) {
  JsonWriter json;
  json.value(text);
  return std::move(json).text();
}

std::string in_quotes(std::string_view text) { return std::string(1, '"').append(text).append(1, '"'); }

std::string written(double number) {
  JsonWriter json;
  json.number(number);
  return std::move(json).text();
}

TEST(JsonWriter, PutsCommasBetweenValuesOnly) {
  JsonWriter json;
  json.open('{').key("a").number(std::uint64_t{1}).key("b").open('[');
  json.number(std::uint64_t{2}).value("x").open('{').close('}').open('[').close(']').close(']');
  json.key("c").open('{').key("d").number(0.5).close('}').close('}');
  EXPECT_EQ(std::move(json).text(), R"({"a":1,"b":[2,"x",{},[]],"c":{"d":0.5}})");
}

// The writer looks at its last character to know whether a comma is due, so texts that end like JSON must not deceive it.
TEST(JsonWriter, PutsCommasAfterTextsThatEndInBrackets) {
  for (const char* const text : {"{", "[", ":", ",", "\\", "\""}) {
    JsonWriter json;
    json.open('[').value(text).value("next").close(']');
    EXPECT_EQ(std::move(json).text(), std::string(1, '[').append(quoted(text)).append(",\"next\"]"));
  }
}

TEST(JsonWriter, EscapesQuotesBackslashesAndControlCharacters) {
  EXPECT_EQ(quoted(""), R"("")");
  EXPECT_EQ(quoted(R"(a "word" in C:\)"), R"("a \"word\" in C:\\")");
  EXPECT_EQ(quoted("\n\t\x1b[31m"), R"("\u000a\u0009\u001b[31m")");
  EXPECT_EQ(quoted(std::string_view("a\0b", 3)), R"("a\u0000b")");
  JsonWriter json;
  json.open('{').key("a\"b").value("").close('}');
  EXPECT_EQ(std::move(json).text(), R"({"a\"b":""})");
}

TEST(JsonWriter, KeepsEveryCharacterOfUtf8) {
  for (const char* const text :
       {"caf\xc3\xa9", "\xe7\x80\xac\xe6\x88\xb8", "\xf0\x9f\x8c\x8a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
        "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(quoted(text), in_quotes(text));
}

// Names and labels come from the program, file names from the system: any bytes. A JSON reader refuses a whole document for one
// byte that is not UTF-8.
TEST(JsonWriter, ReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(quoted("caf\xe9 noir"), "\"caf\xef\xbf\xbd noir\"") << "Latin-1";
  EXPECT_EQ(quoted("caf\xc3"), "\"caf\xef\xbf\xbd\"") << "cut in a character";
  EXPECT_EQ(quoted("\xe7\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\"") << "cut in a character of three bytes";
  EXPECT_EQ(quoted("\xc3\""), "\"\xef\xbf\xbd\\\"\"") << "the quote must not be taken for the second byte";
  for (const char* const one : {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                                "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    std::string wanted;
    for (std::size_t byte = 0; byte < std::string_view(one).size(); ++byte) wanted += "\xef\xbf\xbd";
    EXPECT_EQ(quoted(one), in_quotes(wanted)) << "a stray, overlong or surrogate form, or a number beyond U+10FFFF";
  }
}

TEST(JsonWriter, WritesNumbersThatReadBackTheSame) {
  EXPECT_EQ(written(0.1), "0.1");
  EXPECT_EQ(written(-0.0), "-0");
  EXPECT_EQ(written(1e300), "1e+300");
  std::mt19937_64 random(testing::chosen_seed());
  for (int round = 0; round < 1000; ++round) {
    const std::uint64_t bits = random();
    double number = 0;
    std::memcpy(&number, &bits, sizeof number);
    if (!std::isfinite(number)) continue;
    const std::string text = written(number);
    double back = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), back);
    EXPECT_EQ(error, std::errc());
    EXPECT_EQ(end, text.data() + text.size());
    EXPECT_EQ(back, number) << text;
  }
}

TEST(JsonWriter, WritesWhatJsonCannotStateAsNull) {
  EXPECT_EQ(written(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(written(-std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(written(std::nan("")), "null");
}

TEST(JsonWriter, WritesTheLargestWholeNumberExactly) {
  JsonWriter json;
  json.open('[').number(~std::uint64_t{0}).number(std::uint64_t{0}).close(']');
  EXPECT_EQ(std::move(json).text(), "[18446744073709551615,0]");
}

}  // namespace
}  // namespace seto
