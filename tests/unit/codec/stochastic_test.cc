// Stochastic rounding: the same seed and position give the same bits with every instruction set and every slicing, and the mean
// of many results is the number.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <tuple>

#include "src/codec/codec.h"
#include "tests/support/seed.h"
#include "tests/unit/codec/numbers.h"
#include "tests/unit/device/instruction_sets.h"

namespace seto::codec_test {
namespace {

using reference::Bytes;
using Parameter = std::tuple<Codec, DataType>;

// Thousands of means and correlations are checked, with new seeds in each run: none may be beyond this by chance. Five deviations
// were too few for all of them together, and rare tosses have longer tails than a normal distribution. Of tosses that depend on
// each other, a multiple is expected.
constexpr double kDeviations = 7;

class CodecChance : public ::testing::TestWithParam<Parameter> {
 protected:
  Bytes encoded(const Numbers& numbers, std::uint64_t seed, std::uint64_t first) const {
    Bytes bytes(encoded_size(codec_, numbers.count));
    encode_function(codec_, type_,
                    Rounding::stochastic)({numbers.data(), bytes.data(), numbers.count, Store::cached, seed, first});
    return bytes;
  }

  std::vector<double> decoded(const Bytes& bytes, std::size_t count) const {
    return reference::decoded(codec_, DataType::float64, bytes, count);
  }

  Codec codec_ = std::get<0>(GetParam());
  DataType type_ = std::get<1>(GetParam());
  std::uint64_t seed_ = ::seto::testing::chosen_seed();
  std::mt19937_64 random_{seed_};
};

TEST_P(CodecChance, every_instruction_set_draws_the_same) {
  for (int kind = 0; kind < kKinds; ++kind) {
    Numbers numbers = numbers_of(static_cast<Kind>(kind), type_, 1 + random_() % 3000, random_);
    sprinkle_specials(numbers, random_);
    const std::uint64_t seed = random_();
    Bytes expected;
    for (const std::int64_t set : instruction_sets()) {
      const OnlySet only(set);
      const Bytes actual = encoded(numbers, seed, 0);
      if (expected.empty()) expected = actual;
      ASSERT_EQ(expected, actual) << hwy::TargetName(set) << ", kind " << kind << ", seed " << seed_;
    }
  }
}

TEST_P(CodecChance, slices_draw_like_the_whole) {
  const std::size_t block = facts_of(codec_).block;
  const Numbers numbers = numbers_of(Kind::gradient, type_, 20 * block + 7, random_);
  const std::uint64_t first = block * ((std::uint64_t{1} << 32) / block - 9);  // so that positions pass 2^32
  const Bytes whole = encoded(numbers, seed_, first);
  for (std::size_t cut = block; cut < numbers.count; cut += block) {
    Numbers rest(type_, numbers.count - cut);
    std::memcpy(rest.data(), numbers.bytes.data() + cut * size_of(type_), rest.bytes.size());
    const Bytes tail = encoded(rest, seed_, first + cut);
    ASSERT_EQ(std::memcmp(whole.data() + encoded_size(codec_, cut), tail.data(), tail.size()), 0) << cut;
  }
}

TEST_P(CodecChance, seeds_and_positions_differ) {
  const std::size_t block = facts_of(codec_).block;
  const Numbers numbers = numbers_of(Kind::gradient, type_, 4096, random_);
  const Bytes one = encoded(numbers, seed_, 0);
  EXPECT_EQ(one, encoded(numbers, seed_, 0));
  EXPECT_NE(one, encoded(numbers, seed_ + 1, 0));
  EXPECT_NE(one, encoded(numbers, seed_ ^ (std::uint64_t{1} << 63), 0));
  EXPECT_NE(one, encoded(numbers, seed_, block));
  EXPECT_NE(one, encoded(numbers, seed_, block << 32));
}

// Each element of a block has one of a few positions between two codes. Its mean over many seeds is the number, within some
// standard deviations of the mean of coin tosses, and so is the mean over the block.
TEST_P(CodecChance, the_mean_is_the_number) {
  const std::size_t block = facts_of(codec_).block;
  Numbers numbers(type_, block);
  const double top = 1.984375;  // 127 / 64: the scale is a power of two for int8
  for (std::size_t i = 0; i < block; ++i)
    numbers.set(i, i == 0 ? top : (i % 2 == 0 ? 1 : -1) * (0.25 + 1.25 * static_cast<double>(i) / static_cast<double>(block)));
  constexpr int kRounds = 2000;
  std::vector<double> sums(block);
  double of_all = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto values = decoded(encoded(numbers, seed_ * kRounds + static_cast<std::uint64_t>(round), 0), block);
    for (std::size_t i = 0; i < block; ++i) sums[i] += values[i] - numbers[i];
  }
  double steps = 0;
  for (std::size_t i = 0; i < block; ++i) {
    const double step = error_bound(codec_, DataType::float64, Rounding::stochastic, top, std::abs(numbers[i]));
    const double most = kDeviations * 0.5 * step / std::sqrt(kRounds);
    EXPECT_LE(std::abs(sums[i]) / kRounds, most) << "element " << i << ", seed " << seed_;
    of_all += sums[i];
    steps += step * step;
  }
  EXPECT_LE(std::abs(of_all) / kRounds, kDeviations * 0.5 * std::sqrt(steps / kRounds)) << "seed " << seed_;
}

// Adjacent elements and successive blocks draw independently: the correlation of their errors is that of independent draws.
TEST_P(CodecChance, adjacent_elements_draw_independently) {
  const std::size_t block = facts_of(codec_).block;
  Numbers numbers(type_, block * 400);
  const double between = type_ == DataType::bfloat16 ? 1.5078125 : 1.5081787109375;  // a number that no codec represents
  for (std::size_t i = 0; i < numbers.count; ++i) numbers.set(i, i % block == 0 ? 1.75 : between);
  const auto values = decoded(encoded(numbers, seed_, 0), numbers.count);
  const double low = *std::min_element(values.begin(), values.end());
  std::vector<double> tosses;
  double share = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % block == 0) continue;
    tosses.push_back(values[i] > low ? 1 : 0);
    share += tosses.back();
  }
  share /= static_cast<double>(tosses.size());
  ASSERT_GT(share, 0.01);
  ASSERT_LT(share, 0.99);
  const double deviation = 1 / std::sqrt(static_cast<double>(tosses.size()));
  for (const std::size_t distance : {std::size_t{1}, std::size_t{2}, std::size_t{4}, std::size_t{16}, block - 1}) {
    double correlation = 0;
    for (std::size_t i = 0; i + distance < tosses.size(); ++i)
      correlation += (tosses[i] - share) * (tosses[i + distance] - share);
    correlation /= share * (1 - share) * static_cast<double>(tosses.size());
    EXPECT_LE(std::abs(correlation), kDeviations * deviation) << "distance " << distance << ", seed " << seed_;
  }
}

std::vector<Parameter> parameters() {
  std::vector<Parameter> all;
  for (int codec = 0; codec < kCodecCount; ++codec) {
    for (const DataType type : {DataType::float32, DataType::float64, DataType::bfloat16})
      if (encodes(static_cast<Codec>(codec), type)) all.emplace_back(static_cast<Codec>(codec), type);
  }
  return all;
}

std::string parameter_name(const ::testing::TestParamInfo<Parameter>& info) {
  return std::string(facts_of(std::get<0>(info.param)).name) + "_" + std::string(name_of(std::get<1>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(EveryCodec, CodecChance, ::testing::ValuesIn(parameters()), parameter_name);

}  // namespace
}  // namespace seto::codec_test
