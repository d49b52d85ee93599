// f16, bf16 and their pairs. Each result is computed in double precision and rounded once.
#include <array>
#include <cmath>
#include <limits>

#include "tests/software_gpu/dispatch.h"
#include "tests/software_gpu/float_formats.h"

namespace seto::software_gpu {
namespace {

// `flags` of this group.
constexpr std::uint32_t kFlush = 1, kSaturate = 2, kNan = 4, kRelu = 8;

enum class Function : std::uint8_t { add, sub, mul, fma, min, max, neg, abs, ex2, tanh };

double extreme(double a, double b, bool maximum, std::uint32_t flags) {
  if (std::isnan(a) || std::isnan(b)) {
    return (flags & kNan) != 0 || (std::isnan(a) && std::isnan(b)) ? std::numeric_limits<double>::quiet_NaN()
           : std::isnan(a)                                         ? b
                                                                   : a;
  }
  const bool a_less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
  return a_less == maximum ? b : a;
}

double computed(Function which, double a, double b, double c, std::uint32_t flags) {
  switch (which) {
    case Function::add:
      return fused_for_rounding(a, 1, b);
    case Function::sub:
      return fused_for_rounding(a, 1, -b);
    case Function::mul:
      return a * b;
    case Function::fma:
      return fused_for_rounding(a, b, c);
    case Function::ex2:
      return std::exp2(a);
    case Function::tanh:
      return std::tanh(a);
    default:
      return extreme(a, b, which == Function::max, flags);
  }
}

template <Function kWhich>
std::uint32_t half_result(const std::array<std::uint32_t, 3>& sources, const FloatFormat& format, std::uint32_t flags) {
  if constexpr (kWhich == Function::neg || kWhich == Function::abs)  // they change the sign of a NaN, too
    return kWhich == Function::neg ? sources[0] ^ 0x8000U : sources[0] & 0x7FFFU;
  std::array<double, 3> values{};
  for (std::size_t i = 0; i < 3; ++i) {
    values[i] = decoded(sources[i], format);
    if ((flags & kFlush) != 0 && (sources[i] >> format.mantissa_bits & ((1U << format.exponent_bits) - 1)) == 0)
      values[i] = std::copysign(0.0, values[i]);
  }
  double value = computed(kWhich, values[0], values[1], values[2], flags);
  if ((flags & kRelu) != 0 && value < 0) value = 0;
  if ((flags & kSaturate) != 0) value = value > 0 ? std::min(value, 1.0) : 0.0;  // a NaN becomes 0
  std::uint32_t result = encoded(value, format, Rounding::nearest, false);
  if ((flags & kFlush) != 0 && (result & 0x7FFFU) >> format.mantissa_bits == 0) result &= 0x8000U;
  return result;
}

template <Function kWhich>
void half_operation(Thread& thread, const Instruction& in) {
  const FloatFormat& format = in.type == ScalarType::f16 || in.type == ScalarType::f16x2 ? kHalf : kBfloat;
  const std::uint32_t pairs = size_of(in.type) / 2;
  std::uint32_t result = 0;
  for (std::uint32_t i = 0; i < pairs; ++i) {
    std::array<std::uint32_t, 3> sources{};
    for (std::size_t k = 0; k < in.sources && k < 3; ++k) sources[k] = (thread.get<std::uint32_t>(in.s[k]) >> (16 * i)) & 0xFFFFU;
    result |= half_result<kWhich>(sources, format, in.flags) << (16 * i);
  }
  thread.set_bits(in.d[0], result);
}

struct Row {
  std::string_view name;
  Handler handler;
  std::uint32_t sources;
};

constexpr std::array<Row, 10> kFunctions{{
    {"add", &half_operation<Function::add>, 2},
    {"sub", &half_operation<Function::sub>, 2},
    {"mul", &half_operation<Function::mul>, 2},
    {"fma", &half_operation<Function::fma>, 3},
    {"min", &half_operation<Function::min>, 2},
    {"max", &half_operation<Function::max>, 2},
    {"neg", &half_operation<Function::neg>, 1},
    {"abs", &half_operation<Function::abs>, 1},
    {"ex2", &half_operation<Function::ex2>, 1},
    {"tanh", &half_operation<Function::tanh>, 1},
}};

}  // namespace

bool resolve_half(std::string_view name, Modifiers& modifiers, Instruction& in) {
  for (const Row& row : kFunctions) {
    if (row.name != name || row.sources != in.sources) continue;
    modifiers.take("rn");
    modifiers.take("approx");
    in.flags = (modifiers.take("ftz") ? kFlush : 0U) | (modifiers.take("sat") ? kSaturate : 0U) |
               (modifiers.take("NaN") ? kNan : 0U) | (modifiers.take("relu") ? kRelu : 0U);
    in.handler = row.handler;
    return true;
  }
  return false;
}

}  // namespace seto::software_gpu
