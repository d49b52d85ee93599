// Comparisons and selections.
#include <array>
#include <cmath>

#include "tests/software_gpu/dispatch.h"
#include "tests/software_gpu/float_formats.h"

namespace seto::software_gpu {
namespace {

enum class Comparison : std::uint8_t { eq, ne, lt, le, gt, ge, lo, ls, hi, hs, equ, neu, ltu, leu, gtu, geu, num, nan };
constexpr std::array<std::string_view, 18> kComparisons{"eq", "ne",  "lt",  "le",  "gt",  "ge",  "lo",  "ls",  "hi",
                                                        "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
enum class Combination : std::uint8_t { none, conjunction, disjunction, exclusive };

// `detail` of this group: the comparison; `flags`: the combination, and whether set gives a float.
constexpr std::uint32_t kFloatResult = 16, kFlush = 32;

template <class T>
bool holds(Comparison comparison, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b))
      return (comparison >= Comparison::equ && comparison <= Comparison::geu) || comparison == Comparison::nan;
  }
  switch (comparison) {
    case Comparison::eq:
    case Comparison::equ:
      return a == b;
    case Comparison::ne:
    case Comparison::neu:
      return a != b;
    case Comparison::lt:
    case Comparison::lo:
    case Comparison::ltu:
      return a < b;
    case Comparison::le:
    case Comparison::ls:
    case Comparison::leu:
      return a <= b;
    case Comparison::gt:
    case Comparison::hi:
    case Comparison::gtu:
      return a > b;
    case Comparison::ge:
    case Comparison::hs:
    case Comparison::geu:
      return a >= b;
    case Comparison::num:
      return true;
    case Comparison::nan:
      return false;
  }
  return false;
}

bool combined(bool result, bool other, Combination combination) {
  switch (combination) {
    case Combination::none:
      return result;
    case Combination::conjunction:
      return result && other;
    case Combination::disjunction:
      return result || other;
    case Combination::exclusive:
      return result != other;
  }
  return result;
}

template <class T>
T operand_of(const Thread& thread, const Instruction& in, std::size_t which) {
  if constexpr (std::is_same_v<T, double>) {
    if (in.type == ScalarType::f16 || in.type == ScalarType::bf16)
      return decoded(thread.get<std::uint16_t>(in.s[which]), in.type == ScalarType::f16 ? kHalf : kBfloat);
  }
  const T value = thread.get<T>(in.s[which]);
  if constexpr (std::is_floating_point_v<T>)
    return (in.flags & kFlush) != 0 && std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(T{0}, value) : value;
  return value;
}

template <class T>
void set_predicate(Thread& thread, const Instruction& in) {
  const bool result = holds(static_cast<Comparison>(in.detail), operand_of<T>(thread, in, 0), operand_of<T>(thread, in, 1));
  const auto combination = static_cast<Combination>(in.flags & 3);
  const bool other = in.sources > 2 && thread.predicate(in.s[2]);
  thread.set_bits(in.d[0], combined(result, other, combination) ? 1 : 0);
  if (in.destinations > 1) thread.set_bits(in.d[1], combined(!result, other, combination) ? 1 : 0);
}

template <class T>
void set_value(Thread& thread, const Instruction& in) {
  const bool result = holds(static_cast<Comparison>(in.detail), operand_of<T>(thread, in, 0), operand_of<T>(thread, in, 1));
  const bool other = in.sources > 2 && thread.predicate(in.s[2]);
  const bool all = combined(result, other, static_cast<Combination>(in.flags & 3));
  thread.set<std::uint32_t>(in.d[0], !all ? 0 : (in.flags & kFloatResult) != 0 ? 0x3F800000U : ~0U);
}

// Both operands at once; each half gives a predicate.
void set_pair_of_predicates(Thread& thread, const Instruction& in) {
  const FloatFormat& format = in.type == ScalarType::f16x2 ? kHalf : kBfloat;
  const auto a = thread.get<std::uint32_t>(in.s[0]);
  const auto b = thread.get<std::uint32_t>(in.s[1]);
  for (std::uint32_t i = 0; i < in.destinations; ++i) {
    const bool result = holds(static_cast<Comparison>(in.detail), decoded((a >> (16 * i)) & 0xFFFFU, format),
                              decoded((b >> (16 * i)) & 0xFFFFU, format));
    thread.set_bits(in.d[i], result ? 1 : 0);
  }
}

bool take_comparison(Modifiers& modifiers, Instruction& in) {
  const int comparison = modifiers.take_one_of(kComparisons);
  in.detail = static_cast<std::uint32_t>(comparison);
  in.flags = modifiers.take("and") ? 1U : modifiers.take("or") ? 2U : modifiers.take("xor") ? 3U : 0U;
  in.flags |= modifiers.take("ftz") ? kFlush : 0U;
  return comparison >= 0;
}

template <template <class> class Handlers>
Handler handler_for(ScalarType type) {
  if (type == ScalarType::f16 || type == ScalarType::bf16) return &Handlers<double>::run;
  const auto make = []<class T>() -> Handler { return &Handlers<T>::run; };
  return is_float(type) ? for_float(type, make) : for_integer(type, make);
}

template <class T>
struct PredicateHandler {
  static void run(Thread& thread, const Instruction& in) { set_predicate<T>(thread, in); }
};
template <class T>
struct ValueHandler {
  static void run(Thread& thread, const Instruction& in) { set_value<T>(thread, in); }
};

bool resolve_set_predicate(Modifiers& modifiers, Instruction& in) {
  if (!take_comparison(modifiers, in) || !take_type(modifiers, in)) return false;
  const bool pair = in.type == ScalarType::f16x2 || in.type == ScalarType::bf16x2;
  in.handler = pair ? (in.flags == 0 ? &set_pair_of_predicates : nullptr) : handler_for<PredicateHandler>(in.type);
  return true;
}

bool resolve_set(Modifiers& modifiers, Instruction& in) {
  if (!take_comparison(modifiers, in)) return false;
  const auto result = modifiers.take_type();
  if (!result || size_of(*result) != 4 || is_half(*result) || !take_type(modifiers, in)) return false;
  in.flags |= *result == ScalarType::f32 ? kFloatResult : 0U;
  in.handler = handler_for<ValueHandler>(in.type);
  return true;
}

void select(Thread& thread, const Instruction& in) {
  thread.set_bits(in.d[0], thread.bits(thread.predicate(in.s[2]) ? in.s[0] : in.s[1]) & low_mask(size_of(in.type)));
}

bool resolve_select(Modifiers& modifiers, Instruction& in) {
  if (!take_type(modifiers, in)) return false;
  in.handler = &select;
  return true;
}

// The first if the third is not negative.
template <class T>
void select_by_sign(Thread& thread, const Instruction& in) {
  thread.set_bits(in.d[0], thread.bits(in.s[thread.get<T>(in.s[2]) >= T{0} ? 0 : 1]) & low_mask(size_of(in.type)));
}

bool resolve_select_by_sign(Modifiers& modifiers, Instruction& in) {
  if (!take_type(modifiers, in)) return false;
  const auto decides = modifiers.take_type();
  in.handler = decides == ScalarType::s32   ? &select_by_sign<std::int32_t>
               : decides == ScalarType::f32 ? &select_by_sign<float>
                                            : nullptr;
  return true;
}

constexpr std::array<std::string_view, 6> kProperties{"finite", "infinite", "number", "notanumber", "normal", "subnormal"};

template <class T>
void test_property(Thread& thread, const Instruction& in) {
  const T value = thread.get<T>(in.s[0]);
  const bool is_normal = std::isnormal(value) || std::fpclassify(value) == FP_ZERO;  // zeros count as normal
  const std::array<bool, 6> has{std::isfinite(value), std::isinf(value), !std::isnan(value),
                                std::isnan(value),    is_normal,         std::fpclassify(value) == FP_SUBNORMAL};
  thread.set_bits(in.d[0], has[in.detail] ? 1 : 0);
}

bool resolve_test_property(Modifiers& modifiers, Instruction& in) {
  const int which = modifiers.take_one_of(kProperties);
  in.detail = static_cast<std::uint32_t>(which);
  if (which < 0 || !take_type(modifiers, in)) return false;
  in.handler = for_float(in.type, []<class T>() -> Handler { return &test_property<T>; });
  return true;
}

constexpr std::array<OperationRow, 5> kRows{{
    {"setp", &resolve_set_predicate},
    {"set", &resolve_set},
    {"selp", &resolve_select},
    {"slct", &resolve_select_by_sign},
    {"testp", &resolve_test_property},
}};

}  // namespace

std::span<const OperationRow> compare_operations() { return kRows; }

}  // namespace seto::software_gpu
