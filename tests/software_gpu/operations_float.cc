// f32 and f64 arithmetic. NaN results of f32 are canonical, as on the hardware.
#include <array>
#include <cmath>
#include <limits>

#include "tests/software_gpu/dispatch.h"
#include "tests/software_gpu/rounding.h"

namespace seto::software_gpu {
namespace {

// `flags` of this group.
constexpr std::uint32_t kFlush = 1, kSaturate = 2, kNan = 4;

enum class Function : std::uint8_t {
  add,
  sub,
  mul,
  div,
  fma,
  min,
  max,
  neg,
  abs,
  sqrt,
  rsqrt,
  rcp,
  ex2,
  lg2,
  sin,
  cos,
  tanh,
  copysign,
};

template <class T>
T flushed(T value, std::uint32_t flags) {
  return (flags & kFlush) != 0 && std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(T{0}, value) : value;
}

template <class T>
T finished(T value, std::uint32_t flags) {
  value = flushed(value, flags);
  if ((flags & kSaturate) != 0) value = value > 0 ? std::min(value, T{1}) : T{0};  // a NaN becomes 0
  if (std::isnan(value) && sizeof(T) == 4) return value_of<T>(0x7FFFFFFFU);
  return value;
}

// -0 is less than +0. Without .NaN, a NaN loses against a number.
template <class T>
T extreme(T a, T b, bool maximum, std::uint32_t flags) {
  if (std::isnan(a) || std::isnan(b))
    return (flags & kNan) != 0 || (std::isnan(a) && std::isnan(b)) ? std::numeric_limits<T>::quiet_NaN() : std::isnan(a) ? b : a;
  const bool a_less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
  return a_less == maximum ? b : a;
}

template <class T>
T computed(Function which, T x, T y, T z, std::uint32_t flags) {
  volatile T a = x;  // volatile: see HostRounding
  volatile T b = y;
  volatile T result = 0;
  switch (which) {
    case Function::add:
      result = a + b;
      break;
    case Function::sub:
      result = a - b;
      break;
    case Function::mul:
      result = a * b;
      break;
    case Function::div:
      result = a / b;
      break;
    case Function::fma:
      result = std::fma(a, b, z);
      break;
    case Function::sqrt:
      result = std::sqrt(a);
      break;
    case Function::rcp:
      result = T{1} / a;
      break;
    default:
      result = extreme<T>(x, y, which == Function::max, flags);
  }
  return result;
}

// The quick path: nearest, no flushing, no saturation.
template <class T, Function kWhich>
void plain(Thread& thread, const Instruction& in) {
  const T a = thread.get<T>(in.s[0]);
  const T b = kWhich == Function::sqrt || kWhich == Function::rcp ? T{0} : thread.get<T>(in.s[1]);
  T result = 0;
  if constexpr (kWhich == Function::add)
    result = a + b;
  else if constexpr (kWhich == Function::sub)
    result = a - b;
  else if constexpr (kWhich == Function::mul)
    result = a * b;
  else if constexpr (kWhich == Function::fma)
    result = std::fma(a, b, thread.get<T>(in.s[2]));
  else
    result = computed<T>(kWhich, a, b, T{0}, 0);
  thread.set<T>(in.d[0], finished(result, 0));
}

// detail: the rounding.
template <class T, Function kWhich>
void careful(Thread& thread, const Instruction& in) {
  const T a = flushed(thread.get<T>(in.s[0]), in.flags);
  const T b = in.sources > 1 ? flushed(thread.get<T>(in.s[1]), in.flags) : T{0};
  const T c = in.sources > 2 ? flushed(thread.get<T>(in.s[2]), in.flags) : T{0};
  T result = 0;
  {
    const HostRounding rounding(static_cast<Rounding>(in.detail));
    result = computed<T>(kWhich, a, b, c, in.flags);
  }
  thread.set<T>(in.d[0], finished(result, in.flags));
}

// Functions that the hardware approximates: here they are as good as the host's. Signs are exact.
template <class T, Function kWhich>
void approximate(Thread& thread, const Instruction& in) {
  const T a = flushed(thread.get<T>(in.s[0]), in.flags);
  if constexpr (kWhich == Function::neg || kWhich == Function::abs) {  // they change the sign of a NaN, too
    const std::uint64_t sign = std::uint64_t{1} << (8 * sizeof(T) - 1);
    thread.set_bits(in.d[0], kWhich == Function::neg ? bits_of(a) ^ sign : bits_of(a) & ~sign);
    return;
  }
  if constexpr (kWhich == Function::copysign) {  // the sign of the first operand, the rest of the second
    thread.set<T>(in.d[0], std::copysign(thread.get<T>(in.s[1]), a));
    return;
  }
  const double x = a;
  double result = 0;
  switch (kWhich) {
    case Function::rsqrt:
      result = 1 / std::sqrt(x);
      break;
    case Function::ex2:
      result = std::exp2(x);
      break;
    case Function::lg2:
      result = std::log2(x);
      break;
    case Function::sin:
      result = std::sin(x);
      break;
    case Function::cos:
      result = std::cos(x);
      break;
    default:
      result = std::tanh(x);
  }
  thread.set<T>(in.d[0], finished(static_cast<T>(result), in.flags));
}

template <Function kWhich>
bool resolve_arithmetic(Modifiers& modifiers, Instruction& in) {
  if (modifiers.take("approx") || modifiers.take("full"))
    in.detail = 0;
  else
    in.detail = static_cast<std::uint32_t>(take_rounding(modifiers));
  in.flags =
      (modifiers.take("ftz") ? kFlush : 0U) | (modifiers.take("sat") ? kSaturate : 0U) | (modifiers.take("NaN") ? kNan : 0U);
  const bool is_plain = in.detail == 0 && in.flags == 0;
  in.handler = for_float(in.type, [&]<class T>() -> Handler { return is_plain ? &plain<T, kWhich> : &careful<T, kWhich>; });
  return true;
}

template <Function kWhich>
bool resolve_approximate(Modifiers& modifiers, Instruction& in) {
  modifiers.take("approx");
  in.flags = modifiers.take("ftz") ? kFlush : 0;
  in.handler = for_float(in.type, []<class T>() -> Handler { return &approximate<T, kWhich>; });
  return true;
}

struct Row {
  std::string_view name;
  Resolver resolve;
};

constexpr std::array<Row, 18> kFunctions{{
    {"add", &resolve_arithmetic<Function::add>},
    {"sub", &resolve_arithmetic<Function::sub>},
    {"mul", &resolve_arithmetic<Function::mul>},
    {"div", &resolve_arithmetic<Function::div>},
    {"fma", &resolve_arithmetic<Function::fma>},
    {"min", &resolve_arithmetic<Function::min>},
    {"max", &resolve_arithmetic<Function::max>},
    {"sqrt", &resolve_arithmetic<Function::sqrt>},
    {"rcp", &resolve_arithmetic<Function::rcp>},
    {"neg", &resolve_approximate<Function::neg>},
    {"abs", &resolve_approximate<Function::abs>},
    {"rsqrt", &resolve_approximate<Function::rsqrt>},
    {"ex2", &resolve_approximate<Function::ex2>},
    {"lg2", &resolve_approximate<Function::lg2>},
    {"sin", &resolve_approximate<Function::sin>},
    {"cos", &resolve_approximate<Function::cos>},
    {"tanh", &resolve_approximate<Function::tanh>},
    {"copysign", &resolve_approximate<Function::copysign>},
}};

// Opcodes that integers do not have.
bool resolve_own_name(Modifiers& modifiers, Instruction& in) {
  if (!take_type(modifiers, in)) return false;
  return is_half(in.type) ? resolve_half(modifiers.name(), modifiers, in) : resolve_float(modifiers.name(), modifiers, in);
}

constexpr std::array<OperationRow, 10> kRows{{
    {"fma", &resolve_own_name},
    {"sqrt", &resolve_own_name},
    {"rcp", &resolve_own_name},
    {"rsqrt", &resolve_own_name},
    {"ex2", &resolve_own_name},
    {"lg2", &resolve_own_name},
    {"sin", &resolve_own_name},
    {"cos", &resolve_own_name},
    {"tanh", &resolve_own_name},
    {"copysign", &resolve_own_name},
}};

}  // namespace

bool resolve_float(std::string_view name, Modifiers& modifiers, Instruction& in) {
  for (const Row& row : kFunctions)
    if (row.name == name) return row.resolve(modifiers, in);
  return false;
}

std::span<const OperationRow> float_operations() { return kRows; }

}  // namespace seto::software_gpu
