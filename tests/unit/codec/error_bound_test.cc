// The documented error is never exceeded, and nearly reached.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "src/codec/codec.h"
#include "tests/support/seed.h"
#include "tests/unit/codec/numbers.h"

namespace seto::codec_test {
namespace {

using Parameter = std::tuple<Codec, DataType, Rounding>;

class CodecBound : public ::testing::TestWithParam<Parameter> {
 protected:
  void TearDown() override { RecordProperty("cases", std::to_string(checked_)); }

  // The largest error as a share of the bound.
  double check(const Numbers& numbers, std::uint64_t seed) {
    const auto [codec, type, rounding] = GetParam();
    std::vector<std::uint8_t> encoded(encoded_size(codec, numbers.count));
    encode_function(codec, type, rounding)({numbers.data(), encoded.data(), numbers.count, Store::cached, seed, 0});
    Numbers decoded(type, numbers.count);
    decode_function(codec, type)({encoded.data(), nullptr, decoded.data(), numbers.count, Store::cached});
    const std::size_t block = facts_of(codec).block;
    double worst = 0;
    for (std::size_t start = 0; start < numbers.count; start += block) {
      const std::size_t end = std::min(numbers.count, start + block);
      double largest = 0;
      for (std::size_t i = start; i < end; ++i) largest = std::max(largest, std::abs(numbers[i]));
      for (std::size_t i = start; i < end; ++i) {
        ++checked_;
        const double bound = error_bound(codec, type, rounding, largest, std::abs(numbers[i]));
        const double error = std::abs(decoded[i] - numbers[i]);
        if (!(error <= bound)) {
          ADD_FAILURE() << numbers[i] << " became " << decoded[i] << " in a block up to " << largest << ": bound " << bound;
          return 2;
        }
        if (bound > 0) worst = std::max(worst, error / bound);
      }
    }
    return worst;
  }

 private:
  std::uint64_t checked_ = 0;
};

TEST_P(CodecBound, holds_and_is_tight) {
  const DataType type = std::get<1>(GetParam());
  const std::uint64_t seed = ::seto::testing::chosen_seed();
  std::mt19937_64 random(seed);
  for (int kind = 0; kind < kKinds; ++kind) {
    double worst = 0;
    for (int round = 0; round < 20; ++round) {
      worst = std::max(worst, check(numbers_of(static_cast<Kind>(kind), type, 2048, random), random()));
      ASSERT_LE(worst, 1) << "kind " << kind << ", seed " << seed;
    }
    if (kind == static_cast<int>(Kind::gradient)) {
      EXPECT_GE(worst, 0.9) << "seed " << seed;
    }
  }
}

// Every exponent of the type as the largest of a block, and every exponent below it.
TEST_P(CodecBound, holds_at_each_exponent) {
  const DataType type = std::get<1>(GetParam());
  const Range range = range_of(type);
  const std::uint64_t seed = ::seto::testing::chosen_seed();
  std::mt19937_64 random(seed);
  for (int top = range.lowest; top <= range.highest; top += type == DataType::float64 ? 5 : 1) {
    Numbers numbers(type, 512);
    for (std::size_t i = 0; i < numbers.count; ++i) {
      const double significand = 1 + static_cast<double>(random() >> 11) * 0x1p-53;
      const double value = std::ldexp(significand, top - static_cast<int>(i % 64));
      numbers.set(i, std::min(value, range.largest));
    }
    ASSERT_LE(check(numbers, random()), 1) << "exponent " << top << ", seed " << seed;
  }
}

TEST_P(CodecBound, of_zero_is_zero) {
  const auto [codec, type, rounding] = GetParam();
  EXPECT_EQ(check(Numbers(type, 1000), 1), 0);
  EXPECT_EQ(error_bound(codec, type, rounding, 0, 0), 0);
}

std::vector<Parameter> parameters() {
  std::vector<Parameter> all;
  for (int codec = 0; codec < kCodecCount; ++codec) {
    for (const DataType type : {DataType::float32, DataType::float64, DataType::bfloat16}) {
      if (!encodes(static_cast<Codec>(codec), type)) continue;
      for (const Rounding rounding : {Rounding::nearest, Rounding::stochastic})
        all.emplace_back(static_cast<Codec>(codec), type, rounding);
    }
  }
  return all;
}

std::string parameter_name(const ::testing::TestParamInfo<Parameter>& info) {
  const auto [codec, type, rounding] = info.param;
  return std::string(facts_of(codec).name) + "_" + std::string(name_of(type)) +
         (rounding == Rounding::nearest ? "_nearest" : "_stochastic");
}

INSTANTIATE_TEST_SUITE_P(EveryCodec, CodecBound, ::testing::ValuesIn(parameters()), parameter_name);

}  // namespace
}  // namespace seto::codec_test
