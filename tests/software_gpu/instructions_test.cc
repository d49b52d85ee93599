// Each group of instructions against the host, with random and edge operands.
#include <array>
#include <bit>
#include <cmath>

#include "tests/software_gpu/evaluated.h"
#include "tests/software_gpu/float_formats.h"

namespace seto::software_gpu {
namespace {

__extension__ using Wide = unsigned __int128;
__extension__ using SignedWide = __int128;

TEST(Instructions, IntegerArithmetic) {
  check({
      {"add.s32 %r, %a, %b;", "%r", [](U64 a, U64 b, U64) { return a + b; }},
      {"sub.s64 %d, %da, %db;", "%d", [](U64 a, U64 b, U64) { return a - b; }},
      {"sub.u16 %h, %ha, %hb;", "%h", [](U64 a, U64 b, U64) { return a - b; }},
      {"add.sat.s32 %r, %a, %b;", "%r",
       [](U64 a, U64 b, U64) { return from(std::clamp<std::int64_t>(std::int64_t{s32(a)} + s32(b), INT32_MIN, INT32_MAX)); }},
      {"mul.lo.s32 %r, %a, %b;", "%r", [](U64 a, U64 b, U64) { return a * b; }},
      {"mul.hi.s32 %r, %a, %b;", "%r", [](U64 a, U64 b, U64) { return from((std::int64_t{s32(a)} * s32(b)) >> 32); }},
      {"mul.hi.u64 %d, %da, %db;", "%d", [](U64 a, U64 b, U64) { return static_cast<U64>((Wide{a} * b) >> 64); }},
      {"mul.hi.s64 %d, %da, %db;", "%d", [](U64 a, U64 b, U64) { return static_cast<U64>((SignedWide{s64(a)} * s64(b)) >> 64); }},
      {"mul.wide.s32 %d, %a, %b;", "%d", [](U64 a, U64 b, U64) { return from(std::int64_t{s32(a)} * s32(b)); }},
      {"mul.wide.u16 %r, %ha, %hb;", "%r", [](U64 a, U64 b, U64) { return (a & 0xFFFF) * (b & 0xFFFF); }},
      {"mad.lo.s32 %r, %a, %b, %c;", "%r", [](U64 a, U64 b, U64 c) { return a * b + c; }},
      {"mad.wide.u32 %d, %a, %b, %dc;", "%d", [](U64 a, U64 b, U64 c) { return U64{u32(a)} * u32(b) + c; }},
      {"div.u32 %r, %a, %b;", "%r", [](U64 a, U64 b, U64) { return u32(b) == 0 ? ~0U : u32(a) / u32(b); }},
      {"rem.s64 %d, %da, %db;", "%d", [](U64 a, U64 b, U64) { return b == 0       ? a
                                                                     : b == ~0ULL ? 0
                                                                                  : from(s64(a) % s64(b)); }},
      {"min.s32 %r, %a, %b;", "%r", [](U64 a, U64 b, U64) { return from(std::min(s32(a), s32(b))); }},
      {"max.u64 %d, %da, %db;", "%d", [](U64 a, U64 b, U64) { return std::max(a, b); }},
      {"min.s16 %h, %ha, %hb;", "%h", [](U64 a, U64 b, U64) { return from(std::min(s16(a), s16(b))); }},
      {"abs.s64 %d, %da;", "%d", [](U64 a, U64, U64) { return s64(a) < 0 ? 0 - a : a; }},
      {"neg.s32 %r, %a;", "%r", [](U64 a, U64, U64) { return 0 - a; }},
  });
}

TEST(Instructions, CarryChains) {
  check({
      {"{.reg .b32 %x; .reg .b32 %y; mov.b64 {%x, %y}, %db; .reg .b32 %u; .reg .b32 %v; mov.b64 {%u, %v}, %da;\n"
       "add.cc.u32 %u, %u, %x; addc.u32 %v, %v, %y; mov.b64 %d, {%u, %v};}",
       "%d", [](U64 a, U64 b, U64) { return a + b; }},
      {"{.reg .b32 %x; .reg .b32 %y; mov.b64 {%x, %y}, %db; .reg .b32 %u; .reg .b32 %v; mov.b64 {%u, %v}, %da;\n"
       "sub.cc.u32 %u, %u, %x; subc.u32 %v, %v, %y; mov.b64 %d, {%u, %v};}",
       "%d", [](U64 a, U64 b, U64) { return a - b; }},
      {"{.reg .b32 %u; .reg .b32 %v; .reg .b32 %x; .reg .b32 %y; mov.b64 {%x, %y}, %dc;\n"
       "mad.lo.cc.u32 %u, %a, %b, %x; madc.hi.u32 %v, %a, %b, %y; mov.b64 %d, {%u, %v};}",
       "%d", [](U64 a, U64 b, U64 c) { return U64{u32(a)} * u32(b) + c; }},
  });
}

TEST(Instructions, BitsAndFields) {
  check({
      {"and.b32 %r, %a, %b;", "%r", [](U64 a, U64 b, U64) { return a & b; }},
      {"not.b64 %d, %da;", "%d", [](U64 a, U64, U64) { return ~a; }},
      {"shl.b32 %r, %a, %b;", "%r", [](U64 a, U64 b, U64) { return u32(b) > 31 ? 0 : a << u32(b); }},
      {"shr.s32 %r, %a, %b;", "%r", [](U64 a, U64 b, U64) { return from(s32(a) >> std::min(u32(b), 31U)); }},
      {"shr.u64 %d, %da, %b;", "%d", [](U64 a, U64 b, U64) { return u32(b) > 63 ? 0 : a >> u32(b); }},
      {"shf.l.wrap.b32 %r, %a, %b, %c;", "%r",
       [](U64 a, U64 b, U64 c) { return ((U64{u32(b)} << 32 | u32(a)) << (c & 31)) >> 32; }},
      {"shf.r.clamp.b32 %r, %a, %b, %c;", "%r",
       [](U64 a, U64 b, U64 c) { return (U64{u32(b)} << 32 | u32(a)) >> std::min(u32(c), 32U); }},
      {"lop3.b32 %r, %a, %b, %c, 0x96;", "%r", [](U64 a, U64 b, U64 c) { return a ^ b ^ c; }},
      {"lop3.b32 %r, %a, %b, %c, 0xE8;", "%r", [](U64 a, U64 b, U64 c) { return (a & b) | (a & c) | (b & c); }},
      {"prmt.b32 %r, %a, %b, 0x5410;", "%r", [](U64 a, U64 b, U64) { return (a & 0xFFFF) | (b & 0xFFFF) << 16; }},
      {"prmt.b32 %r, %a, %b, 0x0123;", "%r", [](U64 a, U64, U64) { return __builtin_bswap32(u32(a)); }},
      {"prmt.b32 %r, %a, %b, 0xBA98;", "%r",
       [](U64 a, U64, U64) {
         U64 signs = 0;
         for (U32 i = 0; i < 4; ++i) signs |= ((a >> (8 * i + 7)) & 1) * (0xFFULL << (8 * i));
         return signs;
       }},
      {"bfe.u32 %r, %a, 5, 7;", "%r", [](U64 a, U64, U64) { return (a >> 5) & 127; }},
      {"bfe.s32 %r, %a, 28, 9;", "%r", [](U64 a, U64, U64) { return from(s32(a) >> 28); }},
      {"bfe.s64 %d, %da, 3, 17;", "%d", [](U64 a, U64, U64) { return from(s64(a << 44) >> 47); }},
      {"bfi.b32 %r, %a, %b, 8, 8;", "%r", [](U64 a, U64 b, U64) { return (b & ~0xFF00ULL) | (a & 0xFF) << 8; }},
      {"bfi.b64 %d, %da, %db, 48, 32;", "%d", [](U64 a, U64 b, U64) { return (b & 0xFFFFFFFFFFFF) | a << 48; }},
      {"popc.b64 %r, %da;", "%r", [](U64 a, U64, U64) { return static_cast<U64>(std::popcount(a)); }},
      {"clz.b32 %r, %a;", "%r", [](U64 a, U64, U64) { return static_cast<U64>(std::countl_zero(u32(a))); }},
      {"bfind.u32 %r, %a;", "%r", [](U64 a, U64, U64) { return from(31 - std::countl_zero(u32(a))); }},
      {"brev.b32 %r, %a; brev.b32 %r, %r;", "%r", [](U64 a, U64, U64) { return a; }},
  });
}

TEST(Instructions, Floats) {
  check({
      {"add.f32 %r, %a, %b;", "%r", [](U64 a, U64 b, U64) { return from_float(f32(a) + f32(b)); }},
      {"mul.rn.f32 %r, %a, %b;", "%r", [](U64 a, U64 b, U64) { return from_float(f32(a) * f32(b)); }},
      {"div.rn.f32 %r, %a, %b;", "%r", [](U64 a, U64 b, U64) { return from_float(f32(a) / f32(b)); }},
      {"fma.rn.f32 %r, %a, %b, %c;", "%r", [](U64 a, U64 b, U64 c) { return from_float(std::fma(f32(a), f32(b), f32(c))); }},
      {"sqrt.rn.f32 %r, %a;", "%r", [](U64 a, U64, U64) { return from_float(std::sqrt(f32(a))); }},
      {"max.f32 %r, %a, %b;", "%r",
       [](U64 a, U64 b, U64) {
         if (std::isnan(f32(a)) || std::isnan(f32(b)))  // also a signaling one
           return std::isnan(f32(a)) && std::isnan(f32(b)) ? U64{0x7fffffff} : U64{u32(std::isnan(f32(a)) ? b : a)};
         const bool zeros = f32(a) == 0 && f32(b) == 0;
         return zeros ? U64{u32(a) & u32(b)} : from_float(std::max(f32(a), f32(b)));
       }},
      {"neg.f32 %r, %a;", "%r", [](U64 a, U64, U64) { return a ^ 0x80000000; }},
      {"setp.geu.f32 %p, %a, %b; selp.u32 %r, 1, 0, %p;", "%r", [](U64 a, U64 b, U64) { return !(f32(a) < f32(b)) ? 1U : 0U; }},
      {"setp.ne.f64 %p, %da, %db; selp.u32 %r, 1, 0, %p;", "%r",
       [](U64 a, U64 b, U64) { return f64(a) < f64(b) || f64(a) > f64(b) ? 1U : 0U; }},
      {"cvt.rn.f32.s32 %r, %a;", "%r", [](U64 a, U64, U64) { return from_float(static_cast<float>(s32(a))); }},
      {"cvt.rn.f32.u64 %r, %da;", "%r", [](U64 a, U64, U64) { return from_float(static_cast<float>(a)); }},
      {"cvt.rn.f32.f64 %r, %da;", "%r", [](U64 a, U64, U64) { return from_float(static_cast<float>(f64(a))); }},
      {"cvt.sat.u8.s32 %r, %a;", "%r", [](U64 a, U64, U64) { return from(std::clamp(s32(a), 0, 255)); }},
      {"cvt.s32.s8 %r, %a;", "%r", [](U64 a, U64, U64) { return from(static_cast<std::int8_t>(a)); }},
      {"cvt.rzi.s32.f32 %r, %a;", "%r",
       [](U64 a, U64, U64) {
         const double value = std::trunc(f32(a));
         return std::isnan(value) ? 0 : from(static_cast<std::int64_t>(std::clamp<double>(value, INT32_MIN, INT32_MAX)));
       }},
  });
}

// A rounding of f32 is one of the two adjacent numbers, the one that its name says.
TEST(Instructions, DirectedRoundings) {
  const auto all = operands();
  const auto down = evaluated("add.rm.f32 %r, %a, %b;", "%r", all);
  const auto up = evaluated("add.rp.f32 %r, %a, %b;", "%r", all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double exact = static_cast<double>(f32(all[i][0])) + f32(all[i][1]);
    if (std::isfinite(exact) && std::fabs(exact) < 1e38 &&
        std::fabs(std::log2(std::fabs(f32(all[i][0]) / f32(all[i][1])))) < 25) {
      EXPECT_LE(f32(down[i]), exact);
      EXPECT_GE(f32(up[i]), exact);
      EXPECT_TRUE(f32(down[i]) == f32(up[i]) || std::nextafter(f32(down[i]), f32(up[i])) == f32(up[i]));
    }
  }
}

#if defined(__SIZEOF_FLOAT128__)
// The nearest number of the format, by trying the numbers beside an estimate against the exact value.
U32 nearest(__float128 exact, const FloatFormat& format) {
  const U32 estimate = encoded(static_cast<double>(exact), format, Rounding::nearest, false);
  const U32 sign_bit = 1U << (format.bits() - 1);
  const auto distance = [&](U32 bits) {
    const __float128 difference = exact - static_cast<__float128>(decoded(bits, format));
    return difference < 0 ? -difference : difference;
  };
  U32 best = estimate;
  for (const U32 candidate : {estimate - 1, estimate + 1})
    if (((candidate ^ estimate) & sign_bit) == 0 && std::isfinite(decoded(candidate, format)) &&
        (distance(candidate) < distance(best) || (distance(candidate) == distance(best) && (candidate & 1) == 0)))
      best = candidate;
  return best;
}

TEST(Instructions, FusedMultiplyAddOfHalvesRoundsOnce) {
  for (const auto& [type, format] : {std::pair<std::string, FloatFormat>{"f16", kHalf}, {"bf16", kBfloat}}) {
    std::vector<std::array<U64, 3>> all;
    Random random(11);
    while (all.size() < 1024) {
      const std::array<U64, 3> one{random.next() & 0xFFFF, random.next() & 0xFFFF, random.next() & 0xFFFF};
      const double value = decoded(u32(one[0]), format) * decoded(u32(one[1]), format) + decoded(u32(one[2]), format);
      if (std::isfinite(decoded(encoded(value, format, Rounding::nearest, false), format))) all.push_back(one);
    }
    const auto results = evaluated("fma.rn." + type + " %h, %ha, %hb, %hc;", "%h", all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const __float128 exact = static_cast<__float128>(decoded(u32(all[i][0]), format)) * decoded(u32(all[i][1]), format) +
                               decoded(u32(all[i][2]), format);
      ASSERT_EQ(results[i] & 0x7FFF, nearest(exact, format) & 0x7FFF)
          << type << std::hex << " " << all[i][0] << " " << all[i][1] << " " << all[i][2];
    }
  }
}
#endif

TEST(Instructions, PairsOfHalvesAreTwoHalves) {
  check({
      {"add.f16x2 %r, %a, %b;", "%r",
       [](U64 a, U64 b, U64) {
         U64 result = 0;
         for (U32 i = 0; i < 32; i += 16) {
           const double sum = decoded(u32(a >> i) & 0xFFFF, kHalf) + decoded(u32(b >> i) & 0xFFFF, kHalf);
           result |= U64{encoded(sum, kHalf, Rounding::nearest, false)} << i;
         }
         return result;
       }},
      {"cvt.rn.f16x2.f32 %r, %a, %b;", "%r",
       [](U64 a, U64 b, U64) {
         return U64{encoded(f32(a), kHalf, Rounding::nearest, false)} << 16 | encoded(f32(b), kHalf, Rounding::nearest, false);
       }},
  });
}

// Every number of a small format comes back, and numbers between two go to the nearer.
TEST(Instructions, SmallFormatsRoundTrip) {
  for (const FloatFormat& format : {kE4m3, kE5m2, kHalf, kBfloat}) {
    for (U32 bits = 0; bits < 1U << format.bits(); ++bits) {
      const double value = decoded(bits, format);
      if (std::isnan(value)) continue;
      ASSERT_EQ(encoded(value, format, Rounding::nearest, false), bits);
    }
  }
  EXPECT_EQ(decoded(0x7E, kE4m3), 448);
  EXPECT_EQ(encoded(1e9, kE4m3, Rounding::nearest, true), 0x7EU);
  EXPECT_EQ(encoded(1e9, kE5m2, Rounding::nearest, true), 0x7BU) << "57344";
  EXPECT_EQ(encoded(1e9, kE5m2, Rounding::nearest, false), 0x7CU) << "infinity";
  EXPECT_EQ(encoded(1.0625, kE4m3, Rounding::nearest, false), 0x38U) << "a tie goes to the even one";
  EXPECT_EQ(encoded(65520, kHalf, Rounding::nearest, false), 0x7C00U);
  EXPECT_EQ(encoded(65520, kHalf, Rounding::zero, false), 0x7BFFU);
}

}  // namespace
}  // namespace seto::software_gpu
