#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/software_gpu/kernel_test.h"
#include "tests/software_gpu/random.h"

// Instructions against references of the host, with random and edge operands.
namespace seto::software_gpu {

using U64 = std::uint64_t;
using U32 = std::uint32_t;

// Operands in registers %ha to %hc (16 bits), %a to %c (32), %da to %dc (64); the result in %h, %r or %d.
[[nodiscard]] inline std::vector<U64> evaluated(const std::string& code, const std::string& result,
                                                const std::vector<std::array<U64, 3>>& operands) {
  Machine machine({.multiprocessors = 1});
  const auto count = static_cast<U32>(operands.size());
  const DeviceArray<U64> in(machine, 0, 3 * count), out(machine, 0, count);
  for (U32 i = 0; i < count; ++i) std::copy(operands[i].begin(), operands[i].end(), in.data() + 3 * i);
  const std::string widened =
      result == "%d" ? "mov.u64 %d, %d;" : "cvt.u64.u" + std::string(result == "%h" ? "16" : "32") + " %d, " + result + ";";
  const std::string text = ptx_module(
      ".visible .entry k(.param .u64 pin, .param .u64 pout)\n{\n"
      ".reg .pred %p; .reg .b16 %h; .reg .b16 %ha; .reg .b16 %hb; .reg .b16 %hc; .reg .b32 %r; .reg .b32 %a; .reg .b32 %b;\n"
      ".reg .b32 %c; .reg .b64 %d; .reg .b64 %da; .reg .b64 %db; .reg .b64 %dc; .reg .b64 %in; .reg .b64 %out; .reg .b64 %at;\n"
      "ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout]; mov.u32 %r, %tid.x; mul.wide.u32 %at, %r, 8; add.u64 %out, %out, "
      "%at;\n"
      "mul.lo.u64 %at, %at, 3; add.u64 %in, %in, %at;\n"
      "ld.global.u64 %da, [%in]; ld.global.u64 %db, [%in+8]; ld.global.u64 %dc, [%in+16];\n"
      "cvt.u32.u64 %a, %da; cvt.u32.u64 %b, %db; cvt.u32.u64 %c, %dc; cvt.u16.u64 %ha, %da; cvt.u16.u64 %hb, %db; cvt.u16.u64 "
      "%hc, %dc;\n" +
      code + "\n" + widened + "\nst.global.u64 [%out], %d;\nret;\n}\n");
  run_kernel(machine, machine.load(0, text), "k", {}, {count}, in.address(), out.address());
  return out.values();
}

// Random bits, and edges of integers and of all float formats.
[[nodiscard]] inline std::vector<std::array<U64, 3>> operands() {
  constexpr std::array<U64, 20> kEdges{0,          1,          2,          31,         32,         33,           63,
                                       0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7F800000, 0xFF800000, 0x7FC00000,   0x3F800000,
                                       0x00000001, 0x7C00,     0x7E00,     ~0ULL,      1ULL << 63, ~(1ULL << 63)};
  std::vector<std::array<U64, 3>> all;
  Random random(7);
  for (int i = 0; i < 1024; ++i) {
    std::array<U64, 3> one{};
    for (U64& value : one)
      value = random.one_in(3) ? kEdges[random.below(kEdges.size())] : random.next() >> (random.one_in(3) ? random.below(64) : 0);
    all.push_back(one);
  }
  return all;
}

struct Case {
  const char* code;
  const char* result;
  std::function<U64(U64, U64, U64)> reference;
};

inline void check(const std::vector<Case>& cases) {
  const auto all = operands();
  for (const Case& one : cases) {
    const std::vector<U64> results = evaluated(one.code, one.result, all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const U64 mask = std::string_view(one.result) == "%h" ? 0xFFFF : std::string_view(one.result) == "%r" ? 0xFFFFFFFF : ~0ULL;
      ASSERT_EQ(results[i], one.reference(all[i][0], all[i][1], all[i][2]) & mask)
          << one.code << std::hex << " of " << all[i][0] << ", " << all[i][1] << ", " << all[i][2];
    }
  }
}

[[nodiscard]] inline U32 u32(U64 bits) { return static_cast<U32>(bits); }
[[nodiscard]] inline std::int32_t s32(U64 bits) { return static_cast<std::int32_t>(bits); }
[[nodiscard]] inline std::int64_t s64(U64 bits) { return static_cast<std::int64_t>(bits); }
[[nodiscard]] inline std::int16_t s16(U64 bits) { return static_cast<std::int16_t>(bits); }
[[nodiscard]] inline float f32(U64 bits) { return std::bit_cast<float>(u32(bits)); }
[[nodiscard]] inline double f64(U64 bits) { return std::bit_cast<double>(bits); }
[[nodiscard]] inline U64 from(std::int64_t value) { return static_cast<U64>(value); }
[[nodiscard]] inline U64 from_float(float value) { return std::isnan(value) ? 0x7FFFFFFF : std::bit_cast<U32>(value); }

}  // namespace seto::software_gpu
