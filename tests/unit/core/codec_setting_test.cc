#include "src/core/choice/codec_setting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "src/base/config_table.h"
#include "src/core/call/ids.h"
#include "src/core/choice/planner.h"
#include "src/engine/coding.h"

namespace seto {
namespace {

using ::testing::HasSubstr;

Tiers two_sites() { return made_up_tiers(8, 4, 2).value(); }  // node, site and world

std::uint8_t on(std::string_view text, const Tiers& tiers) {
  const Result<CodecSetting> setting = CodecSetting::parse(text);
  EXPECT_TRUE(setting.ok()) << setting.status().text();
  return setting.value().on(tiers);
}

TEST(CodecSetting, NamesTiers) {
  EXPECT_EQ(on("fp16", two_sites()), 7);
  EXPECT_EQ(on("world=fp16", two_sites()), 4);
  EXPECT_EQ(on("site=fp16,world=fp16", two_sites()), 6);
  EXPECT_EQ(on("fp16,node=none", two_sites()), 6);
  EXPECT_EQ(on("world=fp16", Tiers::flat(4)), 0) << "all ranks are on one node";
  EXPECT_EQ(on("fp16", Tiers::flat(4)), 1);
  for (const char* none : {"", "none", "world=fp16,none"}) EXPECT_EQ(CodecSetting::parse(none).value().number, 0) << none;
  EXPECT_EQ(CodecSetting::parse("int8").value().number, plan_number(Codec::int8));
}

TEST(CodecSetting, HelpNamesEveryCodec) {
  const auto row = std::find_if(std::begin(kConfigTable), std::end(kConfigTable),
                                [](const auto& each) { return each.name == std::string_view("SETO_CODEC"); });
  ASSERT_NE(row, std::end(kConfigTable));
  for (int codec = 0; codec < kCodecCount; ++codec)
    EXPECT_THAT(std::string(row->help), HasSubstr(std::string(facts_of(static_cast<Codec>(codec)).name)));
}

TEST(CodecSetting, NamesTiersOfDifferentSizes) {
  const Tiers uneven = Tiers::of({{0, 0}, {0, 0}, {1, 1}});  // two ranks of one node and one of another site
  ASSERT_EQ(uneven.count(), 2);
  EXPECT_EQ(on("world=fp16", uneven), 2) << "messages within the node are not coded";
  EXPECT_EQ(on("node=fp16", uneven), 1);
  EXPECT_EQ(on("fp16", uneven), 3);
}

TEST(CodecSetting, RejectsInvalidSettings) {
  const auto refusal = [](const char* text) { return std::string(CodecSetting::parse(text).status().text()); };
  EXPECT_THAT(refusal("fp15"), HasSubstr("none, fp16, bf16, e4m3, e5m2, int8, int4"));
  EXPECT_THAT(refusal("moon=fp16"), HasSubstr("'moon' is not a tier"));
  EXPECT_THAT(refusal("site=fp16,world=int8"), HasSubstr("'int8' beside fp16"));
}

TEST(CodecSetting, IdsAndNumbersMatch) {
  for (const char* name : {"none", "fp16", "bf16", "e4m3", "e5m2", "int8", "int4"}) {
    const int id = codec_id(name);
    ASSERT_TRUE(is_codec_id(id)) << name;
    EXPECT_EQ(codec_name(codec_number(id)), name);
  }
  EXPECT_FALSE(is_codec_id(0));
  EXPECT_FALSE(is_codec_id(8));
}

// ---- choice ----

Question sums(std::uint64_t bytes, const Tiers& tiers, std::string_view codec, DataType type = DataType::float32) {
  Question question;
  question.ranks = tiers.ranks();
  question.bytes = bytes;
  question.type = type;
  allow_codec(question, ReduceOp::sum, CodecSetting::parse(codec).value(), tiers);
  return question;
}

TEST(CodedChoice, UsesACodecIfTheLinkIsSlower) {
  for (const auto& [gigabytes, coded] : {std::pair{0.1, true}, {1.0, true}, {12.0, false}, {50.0, false}}) {
    CostModel costs;
    costs.node.bytes_per_second = gigabytes * 1e9;
    const Tiers tiers = Tiers::flat(4);
    const Choice choice = choose(sums(64 << 20, tiers, "fp16"), tiers, costs).value();
    EXPECT_EQ(choice.codec, coded ? plan_number(Codec::fp16) : 0) << gigabytes;
    EXPECT_EQ(choice.coded_tiers, coded ? 1 : 0) << gigabytes;
  }
}

TEST(CodedChoice, CodesOnlyTheWidestTier) {
  const Choice choice = choose(sums(64 << 20, two_sites(), "world=int8"), two_sites(), {}).value();
  EXPECT_EQ(choice.algorithm->name, "hierarchical");
  EXPECT_EQ(choice.coded_tiers, 4);
}

TEST(CodedChoice, IsNotOfferedExceptForSumsOfFloats) {
  const Tiers tiers = Tiers::flat(4);
  EXPECT_EQ(sums(1 << 20, tiers, "fp16", DataType::int32).codec, 0);
  EXPECT_EQ(sums(1 << 20, tiers, "fp16", DataType::bfloat16).codec, 0) << "the codec is not narrower than the type";
  Question question = sums(1 << 20, tiers, "");
  allow_codec(question, ReduceOp::max, CodecSetting::parse("fp16").value(), tiers);
  EXPECT_EQ(question.codec, 0);
  question.collective = Collective::all_gather;
  allow_codec(question, ReduceOp::sum, CodecSetting::parse("fp16").value(), tiers);
  EXPECT_EQ(question.codec, 0);
}

TEST(CodedChoice, EncodesMoreThanTwiceOnlyIfPinned) {
  CostModel slow;
  slow.node.bytes_per_second = 1e8;
  const Tiers tiers = Tiers::flat(5);
  Question question = sums(64 << 20, tiers, "fp16");
  for (const Candidate& candidate : choose(question, tiers, slow).value().candidates)
    if (candidate.algorithm->name == "ring" && candidate.coded_tiers != 0) {
      EXPECT_THAT(candidate.refused, HasSubstr("encodes a value up to 5 times"));
      EXPECT_EQ(candidate.name(question), "ring in fp16");
    }
  question.pin = "ring";
  const Choice pinned = choose(question, tiers, slow).value();
  EXPECT_EQ(pinned.algorithm->name, "ring");
  EXPECT_NE(pinned.codec, 0);
}

}  // namespace
}  // namespace seto
