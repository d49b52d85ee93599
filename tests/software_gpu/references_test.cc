// Instructions that stand alone, against the host: comparisons, approximations, atomics, addresses, jumps.
#include <algorithm>

#include "tests/software_gpu/evaluated.h"
#include "tests/software_gpu/float_formats.h"

namespace seto::software_gpu {
namespace {

template <class T>
U64 distance(T a, T b) {
  return a < b ? static_cast<U64>(b) - static_cast<U64>(a) : static_cast<U64>(a) - static_cast<U64>(b);
}

TEST(References, LogicAndDifferences) {
  check({
      {"or.b32 %r, %a, %b;", "%r", [](U64 a, U64 b, U64) { return a | b; }},
      {"xor.b64 %d, %da, %db;", "%d", [](U64 a, U64 b, U64) { return a ^ b; }},
      {"cnot.b16 %h, %ha;", "%h", [](U64 a, U64, U64) { return (a & 0xFFFF) == 0 ? 1U : 0U; }},
      {"cnot.b32 %r, %a;", "%r", [](U64 a, U64, U64) { return u32(a) == 0 ? 1U : 0U; }},
      {"cnot.b64 %d, %da;", "%d", [](U64 a, U64, U64) { return a == 0 ? 1U : 0U; }},
      {"sad.s32 %r, %a, %b, %c;", "%r", [](U64 a, U64 b, U64 c) { return c + distance(s32(a), s32(b)); }},
      {"sad.u32 %r, %a, %b, %c;", "%r", [](U64 a, U64 b, U64 c) { return c + distance(u32(a), u32(b)); }},
      {"sad.s64 %d, %da, %db, %dc;", "%d", [](U64 a, U64 b, U64 c) { return c + distance(s64(a), s64(b)); }},
      {"sad.u64 %d, %da, %db, %dc;", "%d", [](U64 a, U64 b, U64 c) { return c + distance(a, b); }},
      {"copysign.f32 %r, %a, %b;", "%r", [](U64 a, U64 b, U64) { return (a & 0x80000000) | (b & 0x7FFFFFFF); }},
      {"copysign.f64 %d, %da, %db;", "%d", [](U64 a, U64 b, U64) { return (a & 1ULL << 63) | (b & ~(1ULL << 63)); }},
  });
}

TEST(References, ComparisonsThatGiveValues) {
  check({
      {"set.lt.u32.s32 %r, %a, %b;", "%r", [](U64 a, U64 b, U64) { return s32(a) < s32(b) ? ~0U : 0U; }},
      {"set.hs.s32.u64 %r, %da, %db;", "%r", [](U64 a, U64 b, U64) { return a >= b ? ~0U : 0U; }},
      {"set.eq.f32.u32 %r, %a, %b;", "%r", [](U64 a, U64 b, U64) { return u32(a) == u32(b) ? 0x3F800000U : 0U; }},
      {"set.neu.u32.f32 %r, %a, %b;", "%r",
       [](U64 a, U64 b, U64) { return f32(a) < f32(b) || f32(a) > f32(b) || std::isunordered(f32(a), f32(b)) ? ~0U : 0U; }},
      {"setp.ne.u32 %p, %c, 0; set.gt.and.u32.f64 %r, %da, %db, %p;", "%r",
       [](U64 a, U64 b, U64 c) { return f64(a) > f64(b) && u32(c) != 0 ? ~0U : 0U; }},
      {"slct.u32.s32 %r, %a, %b, %c;", "%r", [](U64 a, U64 b, U64 c) { return s32(c) >= 0 ? a : b; }},
      {"slct.b64.f32 %d, %da, %db, %c;", "%d", [](U64 a, U64 b, U64 c) { return f32(c) >= 0 ? a : b; }},
  });
}

TEST(References, PropertiesOfFloats) {
  const auto is = [](const std::string& property, const auto& has) {
    const std::string single = "testp." + property + ".f32 %p, %a; selp.u32 %r, 1, 0, %p;";
    const std::string twice = "testp." + property + ".f64 %p, %da; selp.u32 %r, 1, 0, %p;";
    check({{single.c_str(), "%r", [&](U64 a, U64, U64) { return has(std::fpclassify(f32(a))) ? 1U : 0U; }},
           {twice.c_str(), "%r", [&](U64 a, U64, U64) { return has(std::fpclassify(f64(a))) ? 1U : 0U; }}});
  };
  is("finite", [](int kind) { return kind != FP_INFINITE && kind != FP_NAN; });
  is("infinite", [](int kind) { return kind == FP_INFINITE; });
  is("number", [](int kind) { return kind != FP_NAN; });
  is("notanumber", [](int kind) { return kind == FP_NAN; });
  is("normal", [](int kind) { return kind == FP_NORMAL || kind == FP_ZERO; });  // PTX counts zeros
  is("subnormal", [](int kind) { return kind == FP_SUBNORMAL; });
}

// An approximation may differ from the exact value by a part of it, or by a number. Subnormal results may lose their last bit.
struct Bound {
  double relative = 0, absolute = 0;
};

// Random numbers of all sizes, and some near 1.
std::vector<std::array<U64, 3>> reals() {
  std::vector<std::array<U64, 3>> all = operands();
  Random random(11);
  for (int i = 0; i < 512; ++i) {
    const auto near = static_cast<float>(random.below(1 << 20)) * 0x1p-17F - 4;  // -4 to 4
    all[static_cast<std::size_t>(i)][0] = std::bit_cast<U32>(near);
  }
  return all;
}

template <class Exact, class BoundOf>
void check_approximation(const std::string& name, const Exact& exact, const BoundOf& bound_of) {
  const auto all = reals();
  const auto results = evaluated(name + " %r, %a;", "%r", all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double x = f32(all[i][0]), expected = exact(x), got = f32(results[i]);
    const std::string what = name + " of " + std::to_string(x) + " gives " + std::to_string(got);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got)) << what;
    } else if (std::isinf(static_cast<float>(expected))) {
      ASSERT_EQ(got, static_cast<float>(expected)) << what;
    } else {
      const Bound bound = bound_of(x);
      ASSERT_LE(std::fabs(got - expected), bound.relative * std::fabs(expected) + bound.absolute + 0x1p-149) << what;
    }
  }
}

// The PTX manual grants errors of about this size, and the host makes smaller ones, so what shows here is a wrong function.
TEST(References, Approximations) {
  const auto within = [](Bound bound) { return [bound](double) { return bound; }; };
  check_approximation(
      "rcp.approx.f32", [](double x) { return 1 / x; }, within({0x1p-23, 0}));
  check_approximation(
      "rsqrt.approx.f32", [](double x) { return 1 / std::sqrt(x); }, within({0x1.1p-23, 0}));
  check_approximation(
      "ex2.approx.f32", [](double x) { return std::exp2(x); }, within({0x1p-22, 0}));
  check_approximation(
      "tanh.approx.f32", [](double x) { return std::tanh(x); }, within({0x1p-11, 0}));
  check_approximation(
      "lg2.approx.f32", [](double x) { return std::log2(x); },
      [](double x) {
        return x > 0.5 && x < 2 ? Bound{0, 0x1p-22} : Bound{0x1p-22, 0};
      });
  const auto in_a_turn = [](double x) { return Bound{0, std::fabs(x) <= 6.28 ? 0x1p-20 : 2}; };  // beyond, no bound is useful
  check_approximation(
      "sin.approx.f32", [](double x) { return std::sin(x); }, in_a_turn);
  check_approximation(
      "cos.approx.f32", [](double x) { return std::cos(x); }, in_a_turn);
  const auto flushed = [](double x) { return std::fabs(x) < 0x1p-126 ? std::copysign(0.0, x) : x; };
  check_approximation(
      "rcp.approx.ftz.f32", [&](double x) { return flushed(1 / flushed(x)); }, within({0x1p-23, 0}));
  check_approximation(
      "ex2.approx.ftz.f32", [&](double x) { return flushed(std::exp2(flushed(x))); }, within({0x1p-22, 0}));
}

TEST(References, ExactReciprocals) {
  check({
      {"rcp.rn.f32 %r, %a;", "%r", [](U64 a, U64, U64) { return from_float(1 / f32(a)); }},
      {"setp.eq.u64 %p, %da, %da; rcp.rn.f64 %d, %da; testp.notanumber.f64 %p, %d; @%p mov.u64 %d, 7;", "%d",
       [](U64 a, U64, U64) { return std::isnan(f64(a)) ? 7 : std::bit_cast<U64>(1 / f64(a)); }},
  });
}

TEST(References, ApproximationsOfHalves) {
  const auto all = operands();
  for (const std::string name : {"tanh", "ex2"}) {
    const auto results = evaluated(name + ".approx.f16 %h, %ha;", "%h", all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double x = decoded(u32(all[i][0]) & 0xFFFF, kHalf), exact = name == "tanh" ? std::tanh(x) : std::exp2(x);
      const double got = decoded(u32(results[i]), kHalf);
      if (std::isnan(exact))
        ASSERT_TRUE(std::isnan(got));
      else if (exact >= 65520)
        ASSERT_TRUE(std::isinf(got)) << x;
      else
        ASSERT_LE(std::fabs(got - exact), 0x1p-9 * std::fabs(exact) + 0x1p-24) << name << " of " << x;
    }
  }
}

// The new value in memory, and the old one that the instruction gives.
void check_update(const std::string& operation, bool is_wide, const std::function<U64(U64, U64, U64)>& updated) {
  const std::string first = is_wide ? "%da" : "%a", result = is_wide ? "%d" : "%r", bits = is_wide ? "b64" : "b32";
  const std::string others = operation.starts_with("cas") ? (is_wide ? "%db, %dc" : "%b, %c") : (is_wide ? "%db" : "%b");
  const std::string store = "st.global." + bits + " [%out], " + first + "; ";
  const std::string update = "atom.global." + operation + " " + result + ", [%out], " + others + ";";
  const std::string load = " ld.global." + bits + " " + result + ", [%out];";
  const std::string gives_new = store + update + load, gives_old = store + update;
  const std::string reduces = store + "red.global." + operation + " [%out], " + others + ";" + load;
  check({{gives_new.c_str(), result.c_str(), updated}, {gives_old.c_str(), result.c_str(), [](U64 a, U64, U64) { return a; }}});
  if (!operation.starts_with("cas") && !operation.starts_with("exch")) check({{reduces.c_str(), result.c_str(), updated}});
}

TEST(References, Atomics) {
  check_update("add.u32", false, [](U64 a, U64 b, U64) { return a + b; });
  check_update("add.u64", true, [](U64 a, U64 b, U64) { return a + b; });
  check_update("min.s32", false, [](U64 a, U64 b, U64) { return from(std::min(s32(a), s32(b))); });
  check_update("min.u32", false, [](U64 a, U64 b, U64) { return std::min(u32(a), u32(b)); });
  check_update("max.s64", true, [](U64 a, U64 b, U64) { return from(std::max(s64(a), s64(b))); });
  check_update("max.u64", true, [](U64 a, U64 b, U64) { return std::max(a, b); });
  check_update("inc.u32", false, [](U64 a, U64 b, U64) { return u32(a) >= u32(b) ? 0 : a + 1; });
  check_update("dec.u32", false, [](U64 a, U64 b, U64) { return u32(a) == 0 || u32(a) > u32(b) ? b : a - 1; });
  check_update("and.b32", false, [](U64 a, U64 b, U64) { return a & b; });
  check_update("or.b64", true, [](U64 a, U64 b, U64) { return a | b; });
  check_update("xor.b32", false, [](U64 a, U64 b, U64) { return a ^ b; });
  check_update("exch.b64", true, [](U64, U64 b, U64) { return b; });
  check_update("cas.b32", false, [](U64 a, U64 b, U64 c) { return u32(a) == u32(b) ? c : a; });
}

TEST(References, LoadsAndAddresses) {
  check({
      {"ldu.global.u64 %d, [%in];", "%d", [](U64 a, U64, U64) { return a; }},
      {"prefetch.global.L2 [%in]; mov.b64 %d, %da;", "%d", [](U64 a, U64, U64) { return a; }},
      {"cvta.to.global.u64 %d, %in; cvta.global.u64 %d, %d; ld.u64 %d, [%d+8];", "%d", [](U64, U64 b, U64) { return b; }},
      {"{.shared .align 8 .b8 box[8]; mov.u64 %dc, box; cvta.shared.u64 %at, %dc; mov.u64 %d, 0;\n"
       "isspacep.shared %p, %at; @%p add.u64 %d, %d, 1; isspacep.global %p, %at; @%p add.u64 %d, %d, 2;\n"
       "isspacep.global %p, %in; @%p add.u64 %d, %d, 4; isspacep.shared %p, %in; @%p add.u64 %d, %d, 8;\n"
       "cvta.to.shared.u64 %at, %at; setp.eq.u64 %p, %at, %dc; @%p add.u64 %d, %d, 16;}",
       "%d", [](U64, U64, U64) { return 1 + 4 + 16; }},
  });
}

TEST(References, JumpsAndPauses) {
  check({
      {"rem.u32 %r, %a, 3;\nTABLE: .branchtargets ZERO, ONE, TWO;\nbrx.idx %r, TABLE;\n"
       "ZERO: mov.u32 %r, 70; bra END;\nONE: mov.u32 %r, 71; bra END;\nTWO: mov.u32 %r, 72;\nEND:",
       "%r", [](U64 a, U64, U64) { return 70 + u32(a) % 3; }},
      {"nanosleep.u32 50; pmevent 3; mov.u32 %r, %a;", "%r", [](U64 a, U64, U64) { return a; }},
  });
  EXPECT_EQ(fault_of([] { (void)evaluated("brkpt; mov.u32 %r, 0;", "%r", {{}}); }).first, FaultKind::trap);
}

}  // namespace
}  // namespace seto::software_gpu
