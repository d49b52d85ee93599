#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/device/instruction_sets.h"

namespace seto {
namespace {

constexpr std::uint32_t kSeed = 77;
constexpr std::size_t kMargin = 192;

struct Case {
  std::size_t size;
  std::size_t targets;
};

void check(CopyFunction copy, const Case& shape, std::mt19937& random) {
  SCOPED_TRACE("size " + std::to_string(shape.size) + ", targets " + std::to_string(shape.targets) + ", seed " +
               std::to_string(kSeed));
  std::vector<std::uint8_t> source(shape.size + 64);
  for (auto& byte : source) byte = static_cast<std::uint8_t>(random());
  const std::uint8_t* const from = source.data() + random() % 64;
  std::vector<std::vector<std::uint8_t>> memory(shape.targets, std::vector<std::uint8_t>(shape.size + 2 * kMargin, 0xA5));
  std::vector<ReduceTarget> targets;
  for (auto& target : memory) {
    targets.push_back({target.data() + random() % kMargin, random() % 2 == 0 ? Store::cached : Store::past_cache});
  }
  copy(from, targets.data(), static_cast<std::uint32_t>(shape.targets), shape.size);
  for (std::size_t k = 0; k < shape.targets; ++k) {
    std::vector<std::uint8_t> expected(memory[k].size(), 0xA5);
    const auto offset = static_cast<std::ptrdiff_t>(static_cast<std::uint8_t*>(targets[k].data) - memory[k].data());
    std::copy_n(from, shape.size, expected.begin() + offset);
    ASSERT_EQ(memory[k], expected) << "target " << k;
  }
}

class Copy : public testing::TestWithParam<std::int64_t> {};

TEST_P(Copy, any_size_alignment_and_store) {
  const OnlySet set(GetParam());
  std::mt19937 random(kSeed);
  for (std::size_t targets = 1; targets <= 4; ++targets) {
    for (std::size_t size = 0; size <= 300; ++size) ASSERT_NO_FATAL_FAILURE(check(copy_function(), {size, targets}, random));
    for (int round = 0; round < 50; ++round) ASSERT_NO_FATAL_FAILURE(check(copy_function(), {random() % 9000, targets}, random));
  }
}

std::string set_name(const testing::TestParamInfo<std::int64_t>& info) { return hwy::TargetName(info.param); }

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, Copy, testing::ValuesIn(instruction_sets()), set_name);

TEST(CopyBytes, any_size_alignment_and_store) {
  std::mt19937 random(kSeed);
  for (std::size_t targets = 1; targets <= 4; ++targets) {
    for (std::size_t size = 0; size <= 600; ++size) ASSERT_NO_FATAL_FAILURE(check(copy_bytes, {size, targets}, random));
    for (int round = 0; round < 20; ++round) ASSERT_NO_FATAL_FAILURE(check(copy_bytes, {random() % 70000, targets}, random));
    for (const std::size_t size : {2047U, 2048U, (512U << 10) - 1, 512U << 10, (512U << 10) + 1})  // where the way changes
      ASSERT_NO_FATAL_FAILURE(check(copy_bytes, {size, targets}, random));
  }
}

}  // namespace
}  // namespace seto
