#include "src/engine/compensation.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/support/seed.h"

namespace seto {
namespace {

struct Case {
  Codec codec;
  DataType type;
};

std::string name_of_case(const ::testing::TestParamInfo<Case>& one) {
  return std::string(facts_of(one.param.codec).name) + "_" + std::string(name_of(one.param.type));
}

// Numbers of any type as doubles.
void put(DataType type, std::byte* at, double number) {
  const auto single = static_cast<float>(number);
  if (type == DataType::float64) std::memcpy(at, &number, sizeof number);
  if (type == DataType::float32) std::memcpy(at, &single, sizeof single);
  if (type != DataType::bfloat16) return;
  const auto bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(single) >> 16);
  std::memcpy(at, &bits, sizeof bits);
}

double get(DataType type, const std::byte* at) {
  if (type == DataType::float64) {
    double number = 0;
    std::memcpy(&number, at, sizeof number);
    return number;
  }
  std::uint32_t bits = 0;
  if (type == DataType::float32) std::memcpy(&bits, at, sizeof bits);
  if (type == DataType::bfloat16) {
    std::uint16_t high = 0;
    std::memcpy(&high, at, sizeof high);
    bits = std::uint32_t{high} << 16;
  }
  return static_cast<double>(std::bit_cast<float>(bits));
}

class Compensated : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr std::size_t kCount = 700;  // two blocks and a part of one

  Compensated() {
    compensation_.encode(values_.data(), encoded_.data(), 0, residual_.data());  // no elements are legal
  }

  [[nodiscard]] DataType wide() const { return residual_type(GetParam().type); }
  void set(std::size_t i, double number) { put(GetParam().type, &values_[i * size_of(GetParam().type)], number); }
  [[nodiscard]] double value(std::size_t i) const { return get(GetParam().type, &values_[i * size_of(GetParam().type)]); }
  [[nodiscard]] double residual(std::size_t i) const { return get(wide(), &residual_[i * size_of(wide())]); }

  // The values that other ranks read.
  std::vector<double> sent() {
    compensation_.encode(values_.data(), encoded_.data(), kCount, residual_.data());
    const DataType type = GetParam().type;
    std::vector<std::byte> decoded(kCount * size_of(type));
    decode_function(GetParam().codec, type)({encoded_.data(), nullptr, decoded.data(), kCount, Store::cached});
    std::vector<double> numbers(kCount);
    for (std::size_t i = 0; i < kCount; ++i) numbers[i] = get(type, &decoded[i * size_of(type)]);
    return numbers;
  }

  Compensation compensation_{GetParam().codec, GetParam().type, kCount};
  std::vector<std::byte> values_ = std::vector<std::byte>(kCount * size_of(GetParam().type));
  std::vector<std::byte> residual_ = std::vector<std::byte>(kCount * size_of(residual_type(GetParam().type)));
  std::vector<std::byte> encoded_ = std::vector<std::byte>(encoded_size(GetParam().codec, kCount));
};

// After any number of calls: the sent values and the residual add up to the input, apart from the roundings of the type itself.
TEST_P(Compensated, KeepsAResidualOfOneEncoding) {
  constexpr int kRounds = 200;
  std::mt19937_64 random(seto::testing::chosen_seed());
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> total(kCount), delivered(kCount);
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < kCount; ++i) {
      set(i, uniform(random) * std::exp2(static_cast<double>(i % 9)));
      total[i] += value(i);
    }
    const std::vector<double> now = sent();
    for (std::size_t i = 0; i < kCount; ++i) delivered[i] += now[i];
  }
  // The encoded value is at most the input plus the residual.
  const double largest = 2 * 256;
  const double once = error_bound(GetParam().codec, GetParam().type, Rounding::nearest, largest, largest);
  const double type_rounds = kRounds * largest * (wide() == DataType::float64 ? 0x1p-53 : 0x1p-24);
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_NEAR(total[i], delivered[i] + residual(i), type_rounds) << i;
    ASSERT_LE(std::abs(residual(i)), once) << i;
  }
}

// Without a residual the same error would be lost in each call.
TEST_P(Compensated, SendsValuesBelowTheStepInLaterCalls) {
  constexpr int kRounds = 300;
  std::vector<double> delivered(kCount);
  for (std::size_t i = 0; i < kCount; ++i) set(i, i % 64 == 0 ? 1.0 : 0x1p-6);
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<double> now = sent();
    for (std::size_t i = 0; i < kCount; ++i) delivered[i] += now[i];
  }
  const double once = error_bound(GetParam().codec, GetParam().type, Rounding::nearest, 2, 2);
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_NEAR(delivered[i], kRounds * value(i), once + kRounds * 0x1p-23) << i;
}

// A residual is not lost if adding it would make a finite number infinite.
TEST_P(Compensated, KeepsAResidualThatDoesNotFit) {
  const double most = GetParam().type == DataType::float64 ? std::numeric_limits<double>::max()
                                                           : static_cast<double>(std::numeric_limits<float>::max());
  put(wide(), &residual_[5 * size_of(wide())], most);
  set(5, most / 2);
  const std::vector<double> now = sent();
  EXPECT_TRUE(std::isfinite(now[5]));
  EXPECT_EQ(residual(5), most);
}

TEST_P(Compensated, KeepsNoResidualForInfinityAndNan) {
  for (std::size_t i = 0; i < kCount; ++i) set(i, 1 + static_cast<double>(i) / 300);
  (void)sent();
  std::vector<double> before(kCount);
  for (std::size_t i = 0; i < kCount; ++i) before[i] = residual(i);
  set(3, std::numeric_limits<double>::infinity());
  set(300, std::numeric_limits<double>::quiet_NaN());
  const std::vector<double> now = sent();
  EXPECT_FALSE(std::isfinite(now[3]));
  EXPECT_TRUE(std::isnan(now[300]));
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(std::isfinite(residual(i))) << i;
    if (!std::isfinite(now[i])) {
      ASSERT_EQ(residual(i), before[i]) << i;
    }
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (int codec = 0; codec < kCodecCount; ++codec)
    for (const DataType type : {DataType::float32, DataType::float64, DataType::bfloat16})
      if (encodes(static_cast<Codec>(codec), type)) cases.push_back({static_cast<Codec>(codec), type});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, Compensated, ::testing::ValuesIn(all_cases()), name_of_case);

}  // namespace
}  // namespace seto
