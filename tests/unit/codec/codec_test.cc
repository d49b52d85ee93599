#include "src/codec/codec.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

namespace seto {
namespace {

// The name of an enumerator appears in the name of this function; a number without an enumerator appears as a cast.
template <Codec kCodec>
bool has_a_name() {
  return std::string_view(__PRETTY_FUNCTION__).find("(seto::Codec)") == std::string_view::npos;
}

// All loops over codecs end at kCodecCount: a codec beyond it would exist, and nothing would test it.
TEST(CodecNames, kCodecCount_counts_all_of_them) {
  EXPECT_TRUE(has_a_name<static_cast<Codec>(kCodecCount - 1)>());
  EXPECT_FALSE(has_a_name<static_cast<Codec>(kCodecCount)>()) << "kCodecCount (src/codec/format.h) ends before the last codec";
}

TEST(CodecNames, differ) {
  std::set<std::string_view> names;
  for (int codec = 0; codec < kCodecCount; ++codec) names.insert(facts_of(static_cast<Codec>(codec)).name);
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kCodecCount));
}

TEST(CodecNames, parse) {
  for (int codec = 0; codec < kCodecCount; ++codec) {
    const auto parsed = parse_codec(facts_of(static_cast<Codec>(codec)).name);
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(static_cast<int>(parsed.value()), codec);
  }
  EXPECT_EQ(parse_codec("fp8").value(), Codec::e4m3);
  EXPECT_EQ(parse_codec("FP16").value(), Codec::fp16);
}

TEST(CodecNames, an_unknown_one_suggests_the_nearest) {
  const auto fp61 = parse_codec("fp61");
  ASSERT_FALSE(fp61.ok());
  EXPECT_EQ(fp61.status().text(),
            "no codec is named 'fp61'; the codecs are fp16, bf16, e4m3, e5m2, int8, int4; did you mean fp16");
  EXPECT_NE(parse_codec("itn8").status().text().find("did you mean int8"), std::string::npos);
  EXPECT_EQ(parse_codec("zstandard").status().text().find("did you mean"), std::string::npos);
  EXPECT_FALSE(parse_codec("").ok());
}

TEST(CodecTypes, what_is_encoded) {
  for (int codec = 0; codec < kCodecCount; ++codec) {
    for (int type = 0; type < kDataTypeCount; ++type) {
      const auto data_type = static_cast<DataType>(type);
      const bool wide = data_type == DataType::float32 || data_type == DataType::float64;
      const bool narrower = data_type == DataType::bfloat16 && facts_of(static_cast<Codec>(codec)).bits <= 8;
      EXPECT_EQ(encodes(static_cast<Codec>(codec), data_type), wide || narrower) << codec << " " << type;
    }
  }
}

TEST(CodecSizes, by_hand) {
  EXPECT_EQ(encoded_size(Codec::fp16, 0), 0u);
  EXPECT_EQ(encoded_size(Codec::fp16, 1), 6u);
  EXPECT_EQ(encoded_size(Codec::fp16, 256), 516u);
  EXPECT_EQ(encoded_size(Codec::fp16, 257), 522u);
  EXPECT_EQ(encoded_size(Codec::bf16, 257), 514u);
  EXPECT_EQ(encoded_size(Codec::e4m3, 512), 520u);
  EXPECT_EQ(encoded_size(Codec::int8, 255), 259u);
  EXPECT_EQ(encoded_size(Codec::int4, 64), 36u);
  EXPECT_EQ(encoded_size(Codec::int4, 65), 41u);
  EXPECT_EQ(encoded_size(Codec::int4, 67), 42u);
}

TEST(CodecSizes, additive_over_blocks_and_right_near_32_bits) {
  for (int index = 0; index < kCodecCount; ++index) {
    const auto codec = static_cast<Codec>(index);
    const std::size_t block = facts_of(codec).block;
    const std::size_t of_block = encoded_size(codec, block);
    for (const std::size_t base : {std::size_t{1} << 31, std::size_t{1} << 32, std::size_t{3} << 32}) {
      for (const std::size_t rest : {std::size_t{0}, std::size_t{1}, block - 1}) {
        EXPECT_EQ(encoded_size(codec, base + rest), base / block * of_block + encoded_size(codec, rest));
        EXPECT_EQ(encoded_size(codec, base - block + rest), (base / block - 1) * of_block + encoded_size(codec, rest));
      }
    }
  }
}

}  // namespace
}  // namespace seto
