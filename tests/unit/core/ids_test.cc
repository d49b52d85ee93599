// Ids of algorithms and codecs, and the texts that list them.

#include "src/core/call/ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "algorithms/algorithm.h"
#include "src/codec/codec.h"
#include "src/engine/coding.h"

namespace seto {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(AlgorithmIds, NumberEachNameOnceFromOne) {
  std::set<int> ids;
  for (const Algorithm& algorithm : algorithms()) {
    const int id = algorithm_id(algorithm.name);
    EXPECT_GT(id, 0);
    EXPECT_EQ(algorithm_name(id), algorithm.name);
    ids.insert(id);
  }
  EXPECT_EQ(*ids.begin(), 1);
  EXPECT_EQ(*ids.rbegin(), static_cast<int>(ids.size())) << "no number is left out";
}

TEST(AlgorithmIds, OfUnknownNamesAreZeroAndZeroHasNoName) {
  for (const char* name : {"", "RING", "ring ", "none", "fp16"}) EXPECT_EQ(algorithm_id(name), 0) << name;
  int beyond = 1;
  while (!algorithm_name(beyond).empty()) ++beyond;
  for (const int id : {-1, 0, beyond, beyond + 1000}) EXPECT_EQ(algorithm_name(id), "") << id;
}

TEST(CodecIds, AreOneForNoneAndThenThoseOfPlans) {
  EXPECT_EQ(codec_id("none"), 1);
  EXPECT_EQ(codec_number(codec_id("none")), 0);
  EXPECT_EQ(codec_name(0), "none");
  for (int codec = 0; codec < kCodecCount; ++codec) {
    const std::string_view name = facts_of(static_cast<Codec>(codec)).name;
    const int id = codec_id(name);
    EXPECT_TRUE(is_codec_id(id));
    EXPECT_EQ(codec_number(id), plan_number(static_cast<Codec>(codec)));
    EXPECT_EQ(codec_name(codec_number(id)), name);
  }
}

TEST(CodecIds, HaveABeginningAndAnEnd) {
  EXPECT_FALSE(is_codec_id(0)) << "no codec was named";
  EXPECT_FALSE(is_codec_id(-1));
  EXPECT_TRUE(is_codec_id(kCodecCount + 1));
  EXPECT_FALSE(is_codec_id(kCodecCount + 2));
  EXPECT_EQ(codec_id("fp17"), 0);
  EXPECT_EQ(codec_id(""), 0);
}

TEST(CodecIds, AreFoundInAnyCaseAndByTheShortName) {
  EXPECT_EQ(codec_id("FP16"), codec_id("fp16"));
  EXPECT_EQ(codec_id("fp8"), codec_id("e4m3"));
}

TEST(KnownNames, SuggestOnlyWhatIsSimilar) {
  EXPECT_THAT(known_codecs("fp61"), EndsWith("; did you mean fp16"));
  EXPECT_THAT(known_algorithms("rnig"), EndsWith("; did you mean ring"));
  EXPECT_THAT(known_algorithms("chrysanthemum"), Not(HasSubstr("did you mean")));
  EXPECT_THAT(known_codecs(), ::testing::StartsWith("none, "));
  EXPECT_THAT(known_codecs(), Not(HasSubstr("did you mean"))) << "nothing was asked for";
  EXPECT_EQ(listed({}, "ring"), "");
}

TEST(SecondsText, KeepsThreeDigitsBelowAThousandSeconds) {
  EXPECT_EQ(seconds_text(0, 1), "1e-06 s");
  EXPECT_EQ(seconds_text(0, 999'400'000), "999 s");
  EXPECT_EQ(seconds_text(0, 1'000'000'000), "1000 s");
  EXPECT_EQ(seconds_text(7, 7), "0 s");
  EXPECT_EQ(seconds_text(~std::uint64_t{0}, 0), "0 s") << "the second moment is before the first";
}

}  // namespace
}  // namespace seto
