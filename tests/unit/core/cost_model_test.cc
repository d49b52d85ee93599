#include "src/core/choice/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <random>

namespace seto {
namespace {

using ::testing::HasSubstr;

TEST(CostModel, TextIsReadBackInSixDigits) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> exponent(-2, 2);
  for (int i = 0; i < 200; ++i) {
    CostModel costs;
    for (TierCost* tier : {&costs.node, &costs.site, &costs.world}) {
      tier->latency_seconds *= std::pow(10, exponent(random));
      tier->bytes_per_second *= std::pow(10, exponent(random));
      tier->message_seconds *= i % 10 == 0 ? 0 : std::pow(10, exponent(random));
    }
    costs.switch_seconds *= std::pow(10, exponent(random));
    const Result<CostModel> read = parse_costs(costs_text(costs), CostSource::measured);
    ASSERT_TRUE(read.ok()) << read.status().text();
    EXPECT_EQ(read.value().source, CostSource::measured);
    EXPECT_NEAR(read.value().site.latency_seconds / costs.site.latency_seconds, 1, 1e-5);
    EXPECT_NEAR(read.value().world.bytes_per_second / costs.world.bytes_per_second, 1, 1e-5);
    EXPECT_NEAR(read.value().node.message_seconds, costs.node.message_seconds, 1e-5 * costs.node.message_seconds);
    // A cost model that was parsed from a text prints the same text; ranks compare these texts.
    EXPECT_EQ(costs_text(read.value()), costs_text(costs));
  }
}

TEST(CostModel, CommentsBlanksAndEqualSignsAreRead) {
  const Result<CostModel> read = parse_costs("# a machine\n\n node.latency_us=0.5 # near\nswitch_us =  3\r\n", CostSource::file);
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_DOUBLE_EQ(read.value().node.latency_seconds, 0.5e-6);
  EXPECT_DOUBLE_EQ(read.value().switch_seconds, 3e-6);
  EXPECT_EQ(read.value().site, CostModel().site);
}

TEST(CostModel, ErrorsAreNamedWithTheirLine) {
  const auto text_of = [](std::string_view text) { return std::string(parse_costs(text, CostSource::file).status().text()); };
  EXPECT_THAT(text_of("switch_us 1\nnode.latancy_us 1\n"),
              HasSubstr("line 2: 'node.latancy_us' is not a constant; did you mean node.latency_us"));
  EXPECT_THAT(text_of("zebra 1"), HasSubstr("'zebra' is not a constant ("));
  for (const char* value : {"", "fast", "1x", "-1", "0", "nan", "inf", "1e300", "1 2"})
    EXPECT_THAT(text_of(std::string("switch_us ") + value), HasSubstr("line 1: switch_us")) << value;
  EXPECT_FALSE(parse_costs("=", CostSource::file).ok());
  EXPECT_THAT(text_of("site.message_us -1"), HasSubstr("site.message_us = '-1': give a number of 0 or more"));
  EXPECT_EQ(parse_costs("site.message_us 0", CostSource::file).value().site.message_seconds, 0) << "an adapter that sends alone";
}

TEST(CostModel, ErrorsShowNoByteThatATerminalObeys) {
  const auto text_of = [](std::string_view text) { return std::string(parse_costs(text, CostSource::file).status().text()); };
  EXPECT_THAT(text_of("\033[2Jkey 1"), HasSubstr("line 1: '\\x1b[2Jkey' is not a constant"));
  EXPECT_THAT(text_of("switch_us \x9b\a"), HasSubstr("switch_us = '\\x9b\\x07': give a number"));
}

TEST(CostModel, AFileThatIsMissingOrTooLongIsNamed) {
  EXPECT_THAT(std::string(read_costs("/nowhere/at/all").status().text()),
              HasSubstr("SETO_TUNING_FILE: /nowhere/at/all cannot be read: No such file or directory; name a file"));
  EXPECT_THAT(std::string(read_costs("/").status().text()), HasSubstr("SETO_TUNING_FILE: / cannot be read"));
  const std::string path = ::testing::TempDir() + "seto_costs_" + std::to_string(std::random_device{}());
  std::ofstream(path) << std::string(70'000, '\n');
  EXPECT_THAT(std::string(read_costs(path).status().text()), HasSubstr("longer than 64 KiB"));
  std::ofstream(path) << "node.latency_us x\n";
  EXPECT_THAT(std::string(read_costs(path).status().text()), HasSubstr(path + ", line 1"));
  std::ofstream(path) << costs_text({});
  EXPECT_TRUE(read_costs(path).ok());
  std::remove(path.c_str());
}

}  // namespace
}  // namespace seto
