#include "src/device/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/sanitizers.h"
#include "tests/unit/device/instruction_sets.h"
#include "tests/unit/device/reference.h"

namespace seto {
namespace {

using reference::Bytes;
using reference::Fold;

constexpr std::uint32_t kSeed = 20240611;
constexpr std::size_t kMargin = 256;
constexpr std::uint8_t kUntouched = 0xA5;

// Half of the elements are any bits (among them NaN, infinity and subnormals), half are near one, so that sums round and small
// terms matter.
Bytes random_elements(DataType type, std::size_t count, std::mt19937& random) {
  Bytes bytes(count * size_of(type));
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  if (is_integer(type)) return bytes;
  for (std::size_t i = 0; i < count; ++i) {
    if (random() % 2 == 0) continue;
    const float value = std::ldexp(static_cast<float>(static_cast<std::int32_t>(random())), -31);
    std::uint8_t* element = bytes.data() + i * size_of(type);
    if (type == DataType::float64) {
      const double wide = value / 3.0;
      std::memcpy(element, &wide, sizeof wide);
    } else if (type == DataType::float32) {
      std::memcpy(element, &value, sizeof value);
    } else {
      const std::uint32_t narrow = reference::narrowed(type, value);
      std::memcpy(element, &narrow, size_of(type));
    }
  }
  return bytes;
}

struct Shape {
  std::size_t count;
  std::size_t sources;
  std::size_t targets;
  bool in_place;
};

// A target inside a larger buffer, at any element offset from a page; the surrounding bytes must not change.
struct ReceiveBuffers {
  std::vector<std::uint8_t> memory;
  std::size_t offset;

  ReceiveBuffers(std::size_t size, std::size_t element, std::mt19937& random) : memory(size + 2 * kMargin + 64, kUntouched) {
    const auto misalignment = reinterpret_cast<std::uintptr_t>(memory.data()) % 64;
    offset = kMargin + (64 - misalignment) % 64;
    if (random() % 2 == 0) offset += random() % (64 / element) * element;
  }
  std::uint8_t* data() { return memory.data() + offset; }

  bool surroundings_untouched(std::size_t size) const {
    for (std::size_t i = 0; i < memory.size(); ++i) {
      if ((i < offset || i >= offset + size) && memory[i] != kUntouched) return false;
    }
    return true;
  }
};

void check(const Fold& fold, const Shape& shape, std::mt19937& random) {
  const std::size_t element = size_of(fold.type);
  std::vector<Bytes> values;
  for (std::size_t k = 0; k < shape.sources; ++k) values.push_back(random_elements(fold.type, shape.count, random));
  const Bytes expected = reference::reduce(fold, values, shape.count);

  std::vector<ReceiveBuffers> inputs;
  std::vector<const void*> sources;
  for (const Bytes& value : values) {
    inputs.emplace_back(value.size(), element, random);
    if (!value.empty()) std::memcpy(inputs.back().data(), value.data(), value.size());
  }
  for (auto& input : inputs) sources.push_back(input.data());
  std::vector<ReceiveBuffers> outputs;
  std::vector<ReduceTarget> targets;
  for (std::size_t k = 0; k < shape.targets; ++k) outputs.emplace_back(expected.size(), element, random);
  for (auto& output : outputs) targets.push_back({output.data(), random() % 2 == 0 ? Store::cached : Store::past_cache});
  if (shape.in_place) targets[0].data = inputs[random() % inputs.size()].data();

  const Bytes scalar = reference::scalar_bytes(fold);
  const ReduceCall call{.sources = sources.data(),
                        .source_count = static_cast<std::uint32_t>(shape.sources),
                        .targets = targets.data(),
                        .target_count = static_cast<std::uint32_t>(shape.targets),
                        .count = shape.count,
                        .scaled_sources = fold.scaled_sources,
                        .scalar = fold.scaled_sources == 0 ? nullptr : scalar.data(),
                        .divisor = fold.divisor};
  reduce_function(fold.type, fold.op)(call);

  for (std::size_t k = 0; k < shape.targets; ++k) {
    ASSERT_EQ(reference::difference(fold.type, expected, static_cast<const std::uint8_t*>(targets[k].data), shape.count), "")
        << name_of(fold.type) << " " << name_of(fold.op) << " " << shape.sources << " sources, target " << k << " of "
        << shape.targets << ", scaled " << fold.scaled_sources << ", divisor " << fold.divisor << ", seed " << kSeed;
    ASSERT_TRUE(outputs[k].surroundings_untouched(expected.size())) << "target " << k << ", " << shape.count << " elements";
  }
  for (auto& input : inputs) ASSERT_TRUE(input.surroundings_untouched(expected.size()));
}

using Parameter = std::tuple<std::int64_t, int>;

class Reduce : public testing::TestWithParam<Parameter> {
 protected:
  OnlySet set_{std::get<0>(GetParam())};
  DataType type_ = static_cast<DataType>(std::get<1>(GetParam()));
  std::mt19937 random_{kSeed};

  std::size_t any_count() { return random_() % 4 == 0 ? random_() % 1500 : random_() % 160; }
};

std::vector<ReduceOp> ops_of(DataType type) {
  std::vector<ReduceOp> ops = {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min};
  if (is_integer(type)) ops.insert(ops.end(), {ReduceOp::bit_and, ReduceOp::bit_or, ReduceOp::bit_xor});
  return ops;
}

TEST_P(Reduce, every_small_count) {
  for (const ReduceOp op : ops_of(type_)) {
    for (std::size_t count = 0; count <= 140; ++count) {
      ASSERT_NO_FATAL_FAILURE(check({type_, op, 0, 1, 1}, {count, 2, 1, false}, random_)) << count;
    }
  }
}

TEST_P(Reduce, every_shape_of_few_sources_and_targets) {
  for (const ReduceOp op : ops_of(type_)) {
    for (std::size_t sources = 1; sources <= 6; ++sources) {
      for (std::size_t targets = 1; targets <= 4; ++targets) {
        for (std::uint64_t round = 0; round < 12 / support::kEvery; ++round) {
          ASSERT_NO_FATAL_FAILURE(check({type_, op, 0, 1, 1}, {any_count(), sources, targets, round % 3 == 0}, random_));
        }
      }
    }
  }
}

TEST_P(Reduce, most_sources_and_targets) {
  check({type_, ReduceOp::sum, 0, 1, 1}, {any_count(), kMaxReduceSources, 1, false}, random_);
  check({type_, ReduceOp::max, 0, 1, 1}, {any_count(), 2, kMaxReduceTargets, false}, random_);
  check({type_, ReduceOp::sum, std::uint64_t{1} << 63, 2, 1}, {any_count(), kMaxReduceSources, kMaxReduceTargets, true}, random_);
}

TEST_P(Reduce, scaled_sources) {
  for (const double scalar : {3.0, 0.25, -1.5, 0.0078125}) {
    if (is_integer(type_) && scalar != 3.0) continue;
    for (std::uint64_t round = 0; round < 40 / support::kLess; ++round) {
      const std::size_t sources = 1 + random_() % 5;
      const std::uint64_t scaled = random_() % (std::uint64_t{1} << sources);
      const ReduceOp op = round % 2 == 0 ? ReduceOp::premul_sum : ReduceOp::avg;
      ASSERT_NO_FATAL_FAILURE(
          check({type_, op, scaled, scalar, 1}, {any_count(), sources, 1 + random_() % 3, round % 4 == 0}, random_));
    }
  }
}

// The product is rounded to the element type before the fold: a fused multiply-add would give other bits.
class ReduceFloats : public Reduce {};
class ReduceIntegers : public Reduce {};

TEST_P(ReduceFloats, a_third_is_rounded_before_it_is_added) {
  const double third = type_ == DataType::float64 ? 1.0 / 3 : static_cast<double>(1.0f / 3);
  for (std::uint64_t scaled = 1; scaled < 16; ++scaled) {
    ASSERT_NO_FATAL_FAILURE(check({type_, ReduceOp::sum, scaled, third, 1}, {700, 4, 1, false}, random_));
  }
}

TEST_P(ReduceIntegers, divided_after_the_fold) {
  for (const std::uint32_t divisor : {2u, 3u, 7u, 100u, 4294967295u}) {
    for (std::size_t sources = 1; sources <= 5; ++sources) {
      ASSERT_NO_FATAL_FAILURE(
          check({type_, ReduceOp::avg, 0, 1, divisor}, {any_count(), sources, 1 + random_() % 2, false}, random_));
    }
  }
}

auto types(bool integer) {
  std::vector<int> chosen;
  for (int type = 0; type < kDataTypeCount; ++type) {
    if (is_integer(static_cast<DataType>(type)) == integer) chosen.push_back(type);
  }
  return testing::ValuesIn(chosen);
}

std::string parameter_name(const testing::TestParamInfo<Parameter>& info) {
  return std::string(hwy::TargetName(std::get<0>(info.param))) + "_" +
         std::string(name_of(static_cast<DataType>(std::get<1>(info.param))));
}

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, Reduce,
                         testing::Combine(testing::ValuesIn(instruction_sets()), testing::Range(0, kDataTypeCount)),
                         parameter_name);
INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, ReduceFloats, testing::Combine(testing::ValuesIn(instruction_sets()), types(false)),
                         parameter_name);
INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, ReduceIntegers,
                         testing::Combine(testing::ValuesIn(instruction_sets()), types(true)), parameter_name);

TEST(ReduceDispatch, takes_the_widest_set) {
  const auto sets = instruction_sets();
  EXPECT_STREQ(instruction_set(), hwy::TargetName(sets.front()));
  EXPECT_GE(sets.size(), 2u) << "only one instruction set was tested";
  const OnlySet last(sets.back());
  EXPECT_STREQ(instruction_set(), hwy::TargetName(sets.back()));
  EXPECT_EQ(reduce_function(DataType::float32, ReduceOp::avg), reduce_function(DataType::float32, ReduceOp::sum));
}

TEST(ReduceDispatch, each_set_has_kernels_of_its_own) {
  std::vector<ReduceFunction> seen;
  for (const std::int64_t set : instruction_sets()) {
    const OnlySet only(set);
    const ReduceFunction function = reduce_function(DataType::bfloat16, ReduceOp::sum);
    for (const ReduceFunction other : seen) EXPECT_NE(function, other) << hwy::TargetName(set);
    seen.push_back(function);
  }
}

}  // namespace
}  // namespace seto
