// Every codec, type and instruction set against the reference, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <tuple>

#include "src/codec/codec.h"
#include "tests/support/sanitizers.h"
#include "tests/support/seed.h"
#include "tests/unit/codec/numbers.h"
#include "tests/unit/device/instruction_sets.h"

namespace seto::codec_test {
namespace {

using reference::Bytes;
using Parameter = std::tuple<std::int64_t, Codec, DataType>;

class CodecKernel : public ::testing::TestWithParam<Parameter> {
 protected:
  Bytes encoded(const Numbers& numbers) const {
    Bytes bytes(encoded_size(codec_, numbers.count));
    encode_function(codec_, type_, Rounding::nearest)({numbers.data(), bytes.data(), numbers.count, Store::cached, 0, 0});
    return bytes;
  }

  Numbers decoded(const Bytes& bytes, std::size_t count) const {
    Numbers numbers(type_, count);
    decode_function(codec_, type_)({bytes.data(), nullptr, numbers.data(), count, Store::cached});
    return numbers;
  }

  // Numbers as bytes of the type; all NaN are the one canonical NaN.
  void expect_numbers(const std::vector<double>& expected, const Numbers& actual, const std::string& what) const {
    Numbers as_bytes(type_, expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) as_bytes.set(i, std::isnan(expected[i]) ? NAN : expected[i]);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(std::memcmp(as_bytes.bytes.data() + i * size_of(type_), actual.bytes.data() + i * size_of(type_), size_of(type_)),
                0)
          << what << ", element " << i << ": " << as_bytes[i] << " expected, " << actual[i] << " found";
    }
  }

  void check(const Numbers& numbers, const std::string& what) const {
    const Bytes expected = reference::encoded(codec_, type_, numbers.data(), numbers.count);
    const Bytes actual = encoded(numbers);
    ASSERT_EQ(expected.size(), actual.size()) << what;
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(int{expected[i]}, int{actual[i]}) << what << ", byte " << i << " of " << expected.size();
    ASSERT_NO_FATAL_FAILURE(
        expect_numbers(reference::decoded(codec_, type_, actual, numbers.count), decoded(actual, numbers.count), what));
  }

  OnlySet set_{std::get<0>(GetParam())};
  Codec codec_ = std::get<1>(GetParam());
  DataType type_ = std::get<2>(GetParam());
  std::uint64_t seed_ = ::seto::testing::chosen_seed();
  std::mt19937_64 random_{seed_};
};

TEST_P(CodecKernel, adversarial_numbers) {
  for (std::uint64_t round = 0; round < 40 / support::kLess; ++round) {
    for (int kind = 0; kind < kKinds; ++kind) {
      const Numbers numbers = numbers_of(static_cast<Kind>(kind), type_, 1 + random_() % 1500, random_);
      ASSERT_NO_FATAL_FAILURE(check(numbers, "kind " + std::to_string(kind) + ", seed " + std::to_string(seed_)));
    }
  }
}

// Under a sanitizer the step is odd, so that every remainder of a vector comes.
TEST_P(CodecKernel, every_small_count) {
  constexpr std::size_t kStep = support::kEvery > 1 ? 5 : 1;
  for (std::size_t count = 0; count <= 300; count += kStep) {
    const Numbers numbers = numbers_of(Kind::huge_range, type_, count, random_);
    ASSERT_NO_FATAL_FAILURE(check(numbers, std::to_string(count) + " elements, seed " + std::to_string(seed_)));
  }
}

TEST_P(CodecKernel, infinities_and_nans) {
  for (std::uint64_t round = 0; round < 40 / support::kLess; ++round) {
    for (int kind = 0; kind < kKinds; ++kind) {
      Numbers numbers = numbers_of(static_cast<Kind>(kind), type_, 1 + random_() % 1500, random_);
      sprinkle_specials(numbers, random_);
      ASSERT_NO_FATAL_FAILURE(check(numbers, "kind " + std::to_string(kind) + ", seed " + std::to_string(seed_)));
    }
  }
}

TEST_P(CodecKernel, only_special_values) {
  for (const double special : {static_cast<double>(INFINITY), -static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
    Numbers numbers(type_, 700);
    for (std::size_t i = 0; i < numbers.count; ++i) numbers.set(i, special);
    ASSERT_NO_FATAL_FAILURE(check(numbers, std::to_string(special)));
  }
}

TEST_P(CodecKernel, random_bits) {
  for (std::uint64_t round = 0; round < 60 / support::kLess; ++round) {
    Numbers numbers(type_, 2000);
    for (auto& byte : numbers.bytes) byte = static_cast<std::uint8_t>(random_());
    ASSERT_NO_FATAL_FAILURE(check(numbers, "seed " + std::to_string(seed_)));
  }
}

// Headers and codes that no encoder writes.
TEST_P(CodecKernel, arbitrary_bytes_are_decoded_alike) {
  for (std::uint64_t round = 0; round < 200 / support::kLess; ++round) {
    const std::size_t count = 1 + random_() % 1500;
    Bytes bytes(encoded_size(codec_, count));
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random_());
    const std::size_t stride = encoded_size(codec_, facts_of(codec_).block);
    for (std::size_t at = 0; round % 2 == 0 && facts_of(codec_).header_size != 0 && at < bytes.size(); at += stride) {
      const auto exponent = static_cast<std::int16_t>(static_cast<int>(random_() % 700) - 350);
      std::memcpy(bytes.data() + at, &exponent, sizeof exponent);
    }
    ASSERT_NO_FATAL_FAILURE(
        expect_numbers(reference::decoded(codec_, type_, bytes, count), decoded(bytes, count), "seed " + std::to_string(seed_)));
  }
}

TEST_P(CodecKernel, accumulates_decoded_numbers) {
  for (int kind = 0; kind < kKinds; ++kind) {
    Numbers numbers = numbers_of(static_cast<Kind>(kind), type_, 1 + random_() % 1500, random_);
    Numbers others = numbers_of(Kind::any_exponent, type_, numbers.count, random_);
    for (std::size_t i = 0; i < others.count; i += 2) others.set(i, numbers[i] * 0.3);
    sprinkle_specials(numbers, random_);
    sprinkle_specials(others, random_);
    const Bytes bytes = encoded(numbers);
    // In bf16 the sum uses the number as fp32, before it would be rounded.
    const DataType sum_type = type_ == DataType::bfloat16 ? DataType::float32 : type_;
    std::vector<double> terms = reference::decoded(codec_, sum_type, bytes, numbers.count);
    const double most = range_of(type_).largest;
    for (double& term : terms) term = std::isfinite(term) ? std::clamp(term, -most, most) : term;
    std::vector<double> sums;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      sums.push_back(others[i] + terms[i]);
      if (type_ != DataType::float64)
        sums.back() = static_cast<float>(static_cast<float>(others[i]) + static_cast<float>(terms[i]));
      // The reference's bf16 saturates as encoders do; a sum overflows.
      if (type_ == DataType::bfloat16 && std::abs(sums.back()) >= std::ldexp(511.0, 119)) sums.back() *= INFINITY;
    }
    Numbers target(type_, numbers.count);
    accumulate_function(codec_, type_)({bytes.data(), others.data(), target.data(), numbers.count, Store::cached});
    ASSERT_NO_FATAL_FAILURE(expect_numbers(sums, target, "kind " + std::to_string(kind) + ", seed " + std::to_string(seed_)));
    accumulate_function(codec_, type_)({bytes.data(), others.data(), others.data(), numbers.count, Store::past_cache});
    ASSERT_EQ(others.bytes, target.bytes) << "in place, kind " << kind << ", seed " << seed_;
  }
}

std::string parameter_name(const ::testing::TestParamInfo<Parameter>& info) {
  return std::string(hwy::TargetName(std::get<0>(info.param))) + "_" + std::string(facts_of(std::get<1>(info.param)).name) + "_" +
         std::string(name_of(std::get<2>(info.param)));
}

std::vector<Parameter> parameters() {
  std::vector<Parameter> all;
  for (const std::int64_t set : instruction_sets()) {
    for (int codec = 0; codec < kCodecCount; ++codec) {
      for (const DataType type : {DataType::float32, DataType::float64, DataType::bfloat16})
        if (encodes(static_cast<Codec>(codec), type)) all.emplace_back(set, static_cast<Codec>(codec), type);
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, CodecKernel, ::testing::ValuesIn(parameters()), parameter_name);

}  // namespace
}  // namespace seto::codec_test
