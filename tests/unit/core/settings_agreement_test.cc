#include "src/core/choice/settings_agreement.h"

#include <gtest/gtest.h>

namespace seto {
namespace {

std::string settings_with(const std::string& codec, std::uint64_t depth = kAutomatic) {
  Config config;
  config.codec = codec;
  config.slot_depth = depth;
  return planning_settings(config);
}

TEST(CommonSettings, AreThoseThatDifferFromTheDefault) {
  EXPECT_EQ(settings_with(""), "");
  EXPECT_EQ(settings_with("world=fp16", 4), "SETO_CODEC=world=fp16\nSETO_SLOT_DEPTH=4\n");
}

TEST(CommonSettings, OfCodecsAreNormalised) {
  EXPECT_EQ(settings_with("none"), "SETO_CODEC=none\n") << "the empty value permits what the links decide";
  EXPECT_EQ(settings_with("world=none"), settings_with("none"));
  EXPECT_EQ(settings_with("node=fp16,site=fp16,world=fp16"), settings_with("fp16"));
  EXPECT_EQ(settings_with("world=int8,site=int8"), settings_with("site=int8,world=int8"));
  EXPECT_EQ(settings_with("fp8"), settings_with("e4m3"));
  EXPECT_NE(settings_with("world=int8"), settings_with("int8"));
}

TEST(CommonSettings, MustAgreeOrTheFirstDifferenceIsNamed) {
  EXPECT_TRUE(check_same({}).ok());
  EXPECT_TRUE(check_same({settings_with("int8"), settings_with("int8")}).ok());
  const Status codec = check_same({settings_with(""), settings_with(""), settings_with("int8", 4)});
  EXPECT_EQ(codec.code(), Code::invalid_usage);
  EXPECT_TRUE(codec.text().starts_with("SETO_CODEC is not set on rank 0 and 'int8' on rank 2: ")) << codec.text();
  const Status depth = check_same({settings_with("int8", 4), settings_with("int8")});
  EXPECT_TRUE(depth.text().starts_with("SETO_SLOT_DEPTH is '4' on rank 0 and 'auto' on rank 1: ")) << depth.text();
}

TEST(CommonSettings, ThatAreMalformedAreRejected) {
  for (const char* const garbage : {"SETO_CODE", "=", "\n\n", "SETO_CODECS=int8\n"}) {
    const Status told = check_same({"", garbage});
    EXPECT_EQ(told.code(), Code::remote_error) << garbage;
    EXPECT_TRUE(told.text().starts_with("rank 1: ")) << told.text();
  }
}

}  // namespace
}  // namespace seto
