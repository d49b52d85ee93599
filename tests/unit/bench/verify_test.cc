#include "bench/common/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "bench/common/formats.h"
#include "tests/support/sanitizers.h"

namespace seto::bench {
namespace {

constexpr std::uint64_t kSeed = 20240607;
constexpr std::size_t kElements = 512;

using Bytes = std::vector<std::byte>;

std::uint64_t load(const Bytes& bytes, std::size_t index, std::size_t size) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + index * size, size);
  return bits;
}

// A deliberately simple model of a library: every operation rounds to the element type.
std::uint64_t apply_float(setoDataType_t type, Op op, std::uint64_t left, std::uint64_t right) {
  const double x = decode_float(type, left);
  const double y = decode_float(type, right);
  if (op == Op::prod) return encode_float(type, x * y);
  if (op == Op::max) return encode_float(type, std::max(x, y));
  if (op == Op::min) return encode_float(type, std::min(x, y));
  return encode_float(type, x + y);
}

template <class T>
std::uint64_t apply_integer(Op op, std::uint64_t left, std::uint64_t right) {
  const auto x = static_cast<T>(left);
  const auto y = static_cast<T>(right);
  if (op == Op::prod) return left * right;
  if (op == Op::max) return static_cast<std::uint64_t>(std::max(x, y));
  if (op == Op::min) return static_cast<std::uint64_t>(std::min(x, y));
  return left + right;
}

std::uint64_t apply(setoDataType_t type, Op op, std::uint64_t left, std::uint64_t right) {
  switch (type) {
    case setoInt8:
      return apply_integer<std::int8_t>(op, left, right);
    case setoUint8:
      return apply_integer<std::uint8_t>(op, left, right);
    case setoInt32:
      return apply_integer<std::int32_t>(op, left, right);
    case setoUint32:
      return apply_integer<std::uint32_t>(op, left, right);
    case setoInt64:
      return apply_integer<std::int64_t>(op, left, right);
    case setoUint64:
      return apply_integer<std::uint64_t>(op, left, right);
    default:
      return apply_float(type, op, left, right);
  }
}

std::uint64_t divide(setoDataType_t type, std::uint64_t bits, int ranks) {
  switch (type) {
    case setoInt8:
      return static_cast<std::uint64_t>(static_cast<std::int8_t>(bits) / ranks);
    case setoInt32:
      return static_cast<std::uint64_t>(static_cast<std::int32_t>(bits) / ranks);
    case setoInt64:
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(bits) / ranks);
    default:
      return bits / static_cast<std::uint64_t>(ranks);
  }
}

std::uint64_t mask_of(std::size_t size) { return size == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * size)) - 1; }

// Joins two random partial results until one is left: any association and any order.
std::uint64_t reduce_at_random(const Pattern& pattern, std::vector<std::uint64_t> values, std::mt19937_64& random) {
  const std::uint64_t mask = mask_of(size_of(pattern.type));
  while (values.size() > 1) {
    std::shuffle(values.begin(), values.end(), random);
    const std::uint64_t last = values.back();
    values.pop_back();
    values.back() = apply(pattern.type, pattern.op, values.back(), last) & mask;
  }
  return values[0];
}

std::uint64_t scale_input(const Pattern& pattern, int rank, std::uint64_t bits) {
  const std::size_t size = size_of(pattern.type);
  if (pattern.op == Op::mul_sum) {
    std::uint64_t scalar = 0;
    write_scalar(pattern, rank, &scalar);
    if (!is_float(pattern.type)) return bits * scalar & mask_of(size);
    return encode_float(pattern.type, decode_float(pattern.type, bits) * decode_float(pattern.type, scalar));
  }
  if (pattern.op == Op::avg && is_float(pattern.type)) {
    const double inverse =
        pattern.type == setoFloat64 ? 1.0 / pattern.ranks : static_cast<double>(1.0F / static_cast<float>(pattern.ranks));
    return encode_float(pattern.type, decode_float(pattern.type, bits) * inverse);
  }
  return bits;
}

Bytes simulate(const Pattern& pattern, const std::vector<Bytes>& inputs, std::mt19937_64& random) {
  const std::size_t size = size_of(pattern.type);
  Bytes result(kElements * size);
  for (std::size_t i = 0; i < kElements; ++i) {
    std::vector<std::uint64_t> values;
    for (int rank = 0; rank < pattern.ranks; ++rank) {
      values.push_back(scale_input(pattern, rank, load(inputs[static_cast<std::size_t>(rank)], i, size)));
    }
    std::uint64_t bits = reduce_at_random(pattern, std::move(values), random);
    if (pattern.op == Op::avg && !is_float(pattern.type)) bits = divide(pattern.type, bits, pattern.ranks);
    std::memcpy(result.data() + i * size, &bits, size);
  }
  return result;
}

std::vector<Bytes> inputs_of(const Pattern& pattern) {
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < pattern.ranks; ++rank) {
    inputs.emplace_back(kElements * size_of(pattern.type));
    fill_reduce_input(pattern, rank, 0, inputs.back());
  }
  return inputs;
}

Bytes expected_of(const Pattern& pattern) {
  Bytes expected(kElements * size_of(pattern.type));
  fill_reduce_expected(pattern, 0, expected);
  return expected;
}

class EveryRankCount : public testing::TestWithParam<int> {};
class SeveralRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Alone, EveryRankCount, testing::Values(1));
INSTANTIATE_TEST_SUITE_P(Ranks, EveryRankCount, testing::Values(2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 64, 130));
INSTANTIATE_TEST_SUITE_P(Ranks, SeveralRanks, testing::Values(2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 64, 130));

TEST_P(EveryRankCount, ResultDoesNotDependOnTheOrder) {
  std::mt19937_64 random(kSeed);
  RecordProperty("seed", static_cast<int>(kSeed));
  std::uint64_t turn = static_cast<std::uint64_t>(GetParam());
  for (const setoDataType_t type : all_types()) {
    for (const Op op : all_ops()) {
      if (turn++ % support::kEvery != 0) continue;
      const Pattern pattern{type, op, GetParam(), kSeed};
      const Bytes actual = simulate(pattern, inputs_of(pattern), random);
      EXPECT_EQ(count_wrong(pattern, expected_of(pattern), actual), 0U)
          << name_of(type) << " " << name_of(op) << " seed " << kSeed;
    }
  }
}

TEST_P(SeveralRanks, AMissingOrRepeatedContributionIsDetected) {
  const int ranks = GetParam();
  std::mt19937_64 random(kSeed);
  std::uint64_t turn = static_cast<std::uint64_t>(ranks);
  for (const setoDataType_t type : all_types()) {
    for (const Op op : all_ops()) {
      if (turn++ % support::kEvery != 0) continue;
      if (op == Op::avg && type == setoInt8 && ranks > 127) continue;  // no sum in range has a quotient but zero
      const Pattern pattern{type, op, ranks, kSeed};
      std::vector<Bytes> inputs = inputs_of(pattern);
      // The last rank's part is replaced by the first one's: one contribution is missing, one is repeated.
      inputs.back() = inputs.front();
      const Bytes actual = simulate(pattern, inputs, random);
      const std::uint64_t wrong = count_wrong(pattern, expected_of(pattern), actual);
      EXPECT_GT(wrong, 0U) << name_of(type) << " " << name_of(op);
    }
  }
}

TEST(Verify, EveryRankContributesNonZeroWherePrecisionAllows) {
  for (const setoDataType_t type : {setoFloat16, setoFloat32, setoFloat64, setoBfloat16, setoFloat8e4m3}) {
    const Pattern pattern{type, Op::sum, 16, kSeed};
    for (const Bytes& input : inputs_of(pattern)) {
      for (std::size_t i = 0; i < kElements; ++i)
        EXPECT_NE(decode_float(type, load(input, i, size_of(type))), 0) << name_of(type);
    }
  }
}

TEST(Verify, InputsAndExpectedValuesAreFiniteAndNormal) {
  for (const setoDataType_t type : all_types()) {
    if (!is_float(type)) continue;
    for (const Op op : all_ops()) {
      const Pattern pattern{type, op, 64, kSeed};
      std::vector<Bytes> all = inputs_of(pattern);
      all.push_back(expected_of(pattern));
      for (const Bytes& values : all) {
        for (std::size_t i = 0; i < kElements; ++i) {
          const double value = decode_float(type, load(values, i, size_of(type)));
          EXPECT_TRUE(std::isfinite(value));
          EXPECT_TRUE(value == 0 || std::ilogb(value) >= format_of(type).min_exponent) << name_of(type) << " " << name_of(op);
        }
      }
    }
  }
}

TEST(Verify, AFillMayStartAtAnyElement) {
  for (const setoDataType_t type : all_types()) {
    const Pattern pattern{type, Op::sum, 5, kSeed};
    const std::size_t size = size_of(type);
    const Bytes whole = expected_of(pattern);
    Bytes tail((kElements - 100) * size);
    fill_reduce_expected(pattern, 100, tail);
    EXPECT_EQ(std::memcmp(tail.data(), whole.data() + 100 * size, tail.size()), 0);
  }
}

TEST(Verify, MovedInputDiffersBetweenRanksIndicesAndSeeds) {
  const auto make = [](std::uint64_t seed, int rank, std::size_t first) {
    Bytes bytes(256);
    fill_moved_input(seed, rank, 4, first, bytes);
    return bytes;
  };
  const Bytes base = make(1, 0, 0);
  EXPECT_EQ(count_differing(4, base, make(1, 0, 0)), 0U);
  EXPECT_EQ(count_differing(4, base, make(1, 1, 0)), 64U);
  EXPECT_EQ(count_differing(4, base, make(1, 0, 1)), 64U);
  EXPECT_EQ(count_differing(4, base, make(2, 0, 0)), 64U);
}

TEST(Verify, CountsElementsNotBytes) {
  const Pattern pattern{setoFloat32, Op::sum, 2, kSeed};
  const Bytes expected = expected_of(pattern);
  Bytes actual = expected;
  for (std::size_t at = 0; at < 12; ++at) actual[at] ^= std::byte{0xff};
  EXPECT_EQ(count_wrong(pattern, expected, actual), 3U);
}

TEST(Verify, AverageAllowsTwoUnitsInTheLastPlaceAndNoMore) {
  const Pattern pattern{setoFloat32, Op::avg, 3, kSeed};
  const float want = 1.5F;
  const auto compare = [&](float have) {
    return count_wrong(pattern, std::as_bytes(std::span(&want, 1)), std::as_bytes(std::span(&have, 1)));
  };
  const float ulp = std::ldexp(1.0F, -23);
  EXPECT_EQ(compare(want + 2 * ulp), 0U);
  EXPECT_EQ(compare(want - 2 * ulp), 0U);
  EXPECT_EQ(compare(want + 3 * ulp), 1U);
  EXPECT_EQ(compare(-want), 1U);
  EXPECT_EQ(compare(NAN), 1U);
}

TEST(Verify, CountsElementsBeyondABound) {
  const std::vector<float> expected = {1, 2, 3, 4};
  const std::vector<float> actual = {1.05F, 2.2F, std::numeric_limits<float>::quiet_NaN(), -4};
  const auto bytes = [](const std::vector<float>& values) { return std::as_bytes(std::span(values)); };
  EXPECT_EQ(count_beyond(setoFloat32, 0.1, bytes(expected), bytes(actual)), 3U);
  EXPECT_EQ(count_beyond(setoFloat32, 0.3, bytes(expected), bytes(actual)), 2U);
  EXPECT_EQ(largest_magnitude(setoFloat32, bytes({1, -7, 3})), 7.0);
  EXPECT_EQ(largest_magnitude(setoFloat32, {}), 0.0);
}

}  // namespace
}  // namespace seto::bench
