// Calls, divergence, switches, conversions and half arithmetic as nvcc compiles them, against the host.
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <map>

#include "tests/software_gpu/float_formats.h"
#include "tests/software_gpu/kernel_test.h"
#include "tests/software_gpu/nvcc.h"

namespace seto::software_gpu {
namespace {

using U32 = std::uint32_t;
using S32 = std::int32_t;

class NvccLanguage : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!find_nvcc()) GTEST_SKIP() << kNeedsNvcc;
    static std::map<std::string, std::string> modules;
    std::string& text = modules[GetParam()];
    if (text.empty()) text = compile_to_ptx(*find_nvcc(), "language.cu", GetParam());
    ASSERT_NE(text, "");
    program_ = &machine_.load(0, text);
  }

  Machine machine_{{.weak = true, .seed = 5}};
  const Program* program_ = nullptr;
};

// The function `diverge` for one warp.
std::array<S32, 32> diverged(std::array<S32, 32> values, const std::array<S32, 8>& local) {
  for (S32 lane = 0; lane < 32; ++lane) {
    S32& value = values[static_cast<std::size_t>(lane)];
    if ((value & 1) != 0)
      value = value * 3 + 1;
    else
      for (S32 k = 0; k < lane; ++k) value ^= k * local[static_cast<std::size_t>(k & 7)];
  }
  std::array<S32, 32> before = values;
  for (std::size_t lane = 0; lane < 32; ++lane) values[lane] += before[lane ^ 16];
  before = values;
  U32 ballot = 0;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    values[lane] += before[lane + 8 < 32 ? lane + 8 : lane];
    ballot |= (values[lane] & 2) != 0 ? 1U << lane : 0U;
  }
  for (S32& value : values) {
    U32 reversed = 0;
    for (U32 i = 0; i < 32; ++i) reversed |= ((static_cast<U32>(value) >> i) & 1U) << (31 - i);
    value += std::popcount(ballot) + std::countl_zero(static_cast<U32>(value)) + static_cast<S32>(reversed & 0xFF);
  }
  return values;
}

TEST_P(NvccLanguage, CallsDivergenceAndAtomics) {
  const DeviceArray<S32> values(machine_, 0, 64);
  const DeviceArray<std::uint64_t> sum(machine_, 0, 2);
  constexpr S32 kN = 3;
  constexpr std::array<S32, 4> kTable{1, 2, 3, 5};
  std::array<S32, 8> local{};
  for (std::size_t k = 0; k < 8; ++k) local[k] = kTable[k & 3] * kN + static_cast<S32>(k);
  std::array<std::array<S32, 32>, 2> warps{};
  for (S32 i = 0; i < 64; ++i) {
    values[static_cast<std::size_t>(i)] = warps[static_cast<std::size_t>(i / 32)][static_cast<std::size_t>(i % 32)] =
        i * 37 % 101;
  }
  run_kernel(machine_, *program_, "call", {1}, {64}, values.address(), sum.address(), kN);
  std::uint64_t bins = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(values[i], diverged(warps[i / 32], local)[i % 32]) << i;
    bins += i % 7 == 0 ? 10 : 9;
  }
  EXPECT_EQ(sum[0], bins);
  EXPECT_EQ(sum[1], 8U) << "the counter begins at 7";
}

TEST_P(NvccLanguage, ASwitchTakesEachOfItsBranches) {
  const DeviceArray<S32> operations(machine_, 0, 32), results(machine_, 0, 32);
  for (S32 i = 0; i < 32; ++i) operations[static_cast<std::size_t>(i)] = i % 8;
  constexpr S32 kN = 1000;
  run_kernel(machine_, *program_, "dispatch", {1}, {32}, operations.address(), results.address(), kN);
  for (S32 i = 0; i < 32; ++i) {
    const std::array<S32, 8> expected{kN,
                                      kN * kN,
                                      kN / (i + 1),
                                      kN % (i + 1),
                                      22,
                                      static_cast<S32>((77'777'000ULL * static_cast<U32>(i * 99'999)) >> 32),
                                      static_cast<std::int8_t>(kN),
                                      -1};
    EXPECT_EQ(results[static_cast<std::size_t>(i)], expected[static_cast<std::size_t>(i % 8)]) << i;
  }
}

TEST_P(NvccLanguage, ConversionsToSmallFormats) {
  const DeviceArray<float> values(machine_, 0, 128), back(machine_, 0, 128);
  const DeviceArray<std::uint16_t> halves(machine_, 0, 128), bfloats(machine_, 0, 128), e4m3(machine_, 0, 128),
      e5m2(machine_, 0, 128);
  Random random(3);
  for (std::size_t i = 0; i < 128; ++i)
    values[i] = std::ldexp(static_cast<float>(random.below(1U << 24)), static_cast<int>(random.below(50)) - 44);
  run_kernel(machine_, *program_, "convert", {1}, {128}, values.address(), halves.address(), bfloats.address(), e4m3.address(),
             e5m2.address(), back.address());
  for (std::size_t i = 0; i < 128; ++i) {
    const double value = values[i];
    EXPECT_EQ(halves[i], encoded(value, kHalf, Rounding::nearest, false));
    EXPECT_EQ(bfloats[i], encoded(value, kBfloat, Rounding::nearest, false));
    const U32 small = encoded(value, kE4m3, Rounding::nearest, true);
    EXPECT_EQ(e4m3[i], small | (small | 0x80U) << 8) << value;
    const U32 wide = encoded(value, kE5m2, Rounding::nearest, true);
    EXPECT_EQ(e5m2[i], wide | (wide | 0x80U) << 8) << value;
    EXPECT_EQ(back[i], 2 * decoded(small, kE4m3));
  }
}

TEST_P(NvccLanguage, HalfArithmetic) {
  const DeviceArray<U32> a(machine_, 0, 128), b(machine_, 0, 128), results(machine_, 0, 512);
  Random random(4);
  for (std::size_t i = 0; i < 128; ++i) {
    a[i] = static_cast<U32>(random.next()) & 0xBFFFBFFFU;  // no infinities and no NaNs
    b[i] = static_cast<U32>(random.next()) & 0xBFFFBFFFU;
  }
  run_kernel(machine_, *program_, "half_arithmetic", {1}, {128}, a.address(), b.address(), results.address());
  for (std::size_t i = 0; i < 128; ++i) {
    for (U32 half = 0; half < 32; half += 16) {
      const double x = decoded((a[i] >> half) & 0xFFFFU, kHalf);
      const double y = decoded((b[i] >> half) & 0xFFFFU, kHalf);
      const std::array<double, 3> exact{x + y, x * y, fused_for_rounding(x, y, x)};
      for (std::size_t k = 0; k < exact.size(); ++k)
        EXPECT_EQ((results[4 * i + k] >> half) & 0xFFFFU, encoded(exact[k], kHalf, Rounding::nearest, false)) << k;
      EXPECT_EQ(decoded((results[4 * i + 3] >> half) & 0xFFFFU, kHalf), std::max(x, y));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, NvccLanguage, ::testing::Values("compute_80", "compute_90"),
                         [](const auto& architecture) { return std::string(architecture.param); });

}  // namespace
}  // namespace seto::software_gpu
