// Every value of the 8- and 16-bit floats, and every pair of the 8-bit ones.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "src/device/reduce.h"
#include "tests/support/sanitizers.h"
#include "tests/unit/device/instruction_sets.h"
#include "tests/unit/device/reference.h"

namespace seto {
namespace {

using reference::Bytes;
using reference::Fold;
using Parameter = std::tuple<std::int64_t, DataType>;

constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min};

class Narrow : public testing::TestWithParam<Parameter> {
 protected:
  OnlySet set_{std::get<0>(GetParam())};
  DataType type_ = std::get<1>(GetParam());

  Bytes elements(const std::vector<std::uint32_t>& codes) const {
    Bytes bytes(codes.size() * size_of(type_));
    for (std::size_t i = 0; i < codes.size(); ++i) std::memcpy(bytes.data() + i * size_of(type_), &codes[i], size_of(type_));
    return bytes;
  }

  void check(const Fold& fold, const std::vector<Bytes>& values) const {
    const std::size_t count = values[0].size() / size_of(type_);
    std::vector<const void*> sources;
    for (const Bytes& value : values) sources.push_back(value.data());
    Bytes actual(values[0].size());
    const ReduceTarget target{actual.data(), Store::cached};
    const Bytes scalar = reference::scalar_bytes(fold);
    reduce_function(type_, fold.op)({.sources = sources.data(),
                                     .source_count = static_cast<std::uint32_t>(sources.size()),
                                     .targets = &target,
                                     .target_count = 1,
                                     .count = count,
                                     .scaled_sources = fold.scaled_sources,
                                     .scalar = scalar.data(),
                                     .divisor = 1});
    EXPECT_EQ(reference::difference(type_, reference::reduce(fold, values, count), actual.data(), count), "")
        << name_of(fold.op) << " scaled " << fold.scaled_sources << " by " << fold.scalar;
  }
};

TEST_P(Narrow, every_value_scaled) {
  std::vector<std::uint32_t> codes;
  const bool short_codes = size_of(type_) == 1;
  const auto step = static_cast<std::uint32_t>(short_codes || support::kLess == 1 ? 1 : 7);
  for (std::uint32_t code = 0; code < (short_codes ? 256u : 65536u); code += step) codes.push_back(code);
  const Bytes values = elements(codes);
  // Powers of two move each value through the subnormals; the other factors give ties, overflow and inexact products.
  for (const double scalar : {1.0, -1.0, 0.5, 0.25, 0.0625, 0.00390625, 0.75, 1.125, 1.5, 3.0, 4096.0, 1e-6, 1e30, 1e-30, 0.0}) {
    check({type_, ReduceOp::sum, 1, static_cast<double>(static_cast<float>(scalar)), 1}, {values});
  }
  check({type_, ReduceOp::sum, 1, static_cast<double>(INFINITY), 1}, {values});
  check({type_, ReduceOp::sum, 1, static_cast<double>(NAN), 1}, {values});
}

TEST_P(Narrow, pairs) {
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> second;
  // All pairs of 8-bit values; of the 16-bit ones, 331 x 331 values spread evenly over all codes, sign and NaN included.
  const std::uint32_t step = size_of(type_) == 1 ? 1 : 198 * static_cast<std::uint32_t>(support::kEvery);
  const std::uint32_t end = size_of(type_) == 1 ? 256 : 65536;
  for (std::uint32_t a = 0; a < end; a += step) {
    for (std::uint32_t b = 0; b < end; b += step) {
      first.push_back(a);
      second.push_back(b);
    }
  }
  for (const ReduceOp op : kOps) check({type_, op, 0, 1, 1}, {elements(first), elements(second)});
}

std::string parameter_name(const testing::TestParamInfo<Parameter>& info) {
  return std::string(hwy::TargetName(std::get<0>(info.param))) + "_" + std::string(name_of(std::get<1>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, Narrow,
                         testing::Combine(testing::ValuesIn(instruction_sets()),
                                          testing::Values(DataType::float16, DataType::bfloat16, DataType::float8e4m3,
                                                          DataType::float8e5m2)),
                         parameter_name);

}  // namespace
}  // namespace seto
