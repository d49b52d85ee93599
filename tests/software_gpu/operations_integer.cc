// Integer arithmetic. Opcodes that other types share (add, min, ...) are passed on by type.
#include <array>

#include "tests/software_gpu/dispatch.h"

namespace seto::software_gpu {
namespace {

// All in 64 bits without a sign, so that nothing overflows in C++.
template <class T>
constexpr std::uint64_t wide_bits(T value) {
  return static_cast<std::uint64_t>(value);
}

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(wide_bits(a) + wide_bits(b));
  }
};
struct Subtract {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(wide_bits(a) - wide_bits(b));
  }
};
struct MultiplyLow {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(wide_bits(a) * wide_bits(b));
  }
};
struct MultiplyHigh {
  template <class T>
  T operator()(T a, T b) const {
    __extension__ using Product = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>((static_cast<Product>(a) * static_cast<Product>(b)) >> (8 * sizeof(T)));
  }
};
// A division by zero gives all ones, as the hardware does.
struct Divide {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>)
      return b == -1 ? static_cast<T>(0 - wide_bits(a)) : static_cast<T>(a / b);
    else
      return static_cast<T>(a / b);
  }
};
struct Remainder {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>)
      return b == -1 ? T{0} : static_cast<T>(a % b);
    else
      return static_cast<T>(a % b);
  }
};
struct Minimum {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};
struct Maximum {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct Negate {
  template <class T>
  T operator()(T a) const {
    return static_cast<T>(0 - wide_bits(a));
  }
};
struct Absolute {
  template <class T>
  T operator()(T a) const {
    return a < 0 ? Negate{}(a) : a;
  }
};
struct MultiplyAddLow {
  template <class T>
  T operator()(T a, T b, T c) const {
    return static_cast<T>(wide_bits(a) * wide_bits(b) + wide_bits(c));
  }
};
struct MultiplyAddHigh {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add{}(MultiplyHigh{}(a, b), c);
  }
};
struct SumOfDifference {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add{}(c, a < b ? Subtract{}(b, a) : Subtract{}(a, b));
  }
};

template <class T>
using WideOf = std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>,
                                  std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;

template <class T>
void multiply_wide(Thread& thread, const Instruction& in) {
  using Wide = WideOf<T>;
  thread.set<Wide>(in.d[0], MultiplyLow{}(Wide{thread.get<T>(in.s[0])}, Wide{thread.get<T>(in.s[1])}));
}
template <class T>
void multiply_add_wide(Thread& thread, const Instruction& in) {
  using Wide = WideOf<T>;
  thread.set<Wide>(in.d[0],
                   MultiplyAddLow{}(Wide{thread.get<T>(in.s[0])}, Wide{thread.get<T>(in.s[1])}, thread.get<Wide>(in.s[2])));
}

// Saturation exists for s32 only.
void add_saturated(Thread& thread, const Instruction& in) {
  const std::int64_t a = thread.get<std::int32_t>(in.s[0]);
  const std::int64_t b = thread.get<std::int32_t>(in.s[1]);
  const std::int64_t sum = in.detail == 0 ? a + b : a - b;
  thread.set(in.d[0], static_cast<std::int32_t>(std::min<std::int64_t>(std::max<std::int64_t>(sum, INT32_MIN), INT32_MAX)));
}

// Sums with carry. `detail`: 1 takes the carry in, 2 gives it out. Subtraction is addition of the complement, with a borrow that
// is the complement of the carry.
template <class T, bool kSubtracts>
void add_with_carry(Thread& thread, const Instruction& in) {
  using Unsigned = std::make_unsigned_t<T>;
  const auto a = thread.get<Unsigned>(in.s[0]);
  const auto b = static_cast<Unsigned>(kSubtracts ? ~thread.get<Unsigned>(in.s[1]) : thread.get<Unsigned>(in.s[1]));
  const bool carry = (in.detail & 1) != 0 ? thread.carry != kSubtracts : kSubtracts;
  __extension__ using Sum = unsigned __int128;
  const Sum sum = Sum{a} + b + (carry ? 1U : 0U);
  if ((in.detail & 2) != 0) thread.carry = ((sum >> (8 * sizeof(T))) != 0) != kSubtracts;
  thread.set<Unsigned>(in.d[0], static_cast<Unsigned>(sum));
}

template <class T, class Multiply>
void multiply_add_with_carry(Thread& thread, const Instruction& in) {
  using Unsigned = std::make_unsigned_t<T>;
  const auto product = static_cast<Unsigned>(Multiply{}(thread.get<T>(in.s[0]), thread.get<T>(in.s[1])));
  __extension__ using Sum = unsigned __int128;
  const Sum sum = Sum{product} + thread.get<Unsigned>(in.s[2]) + ((in.detail & 1) != 0 && thread.carry ? 1U : 0U);
  if ((in.detail & 2) != 0) thread.carry = (sum >> (8 * sizeof(T))) != 0;
  thread.set<Unsigned>(in.d[0], static_cast<Unsigned>(sum));
}

template <class F>
Handler binary_of(ScalarType type) {
  return for_integer(type, []<class T>() -> Handler { return &binary<T, F>; });
}
template <class F>
Handler ternary_of(ScalarType type) {
  return for_integer(type, []<class T>() -> Handler { return &ternary<T, F>; });
}
template <class F>
Handler unary_of(ScalarType type) {
  return for_integer(type, []<class T>() -> Handler { return &unary<T, F>; });
}

template <class F, bool kSubtracts>
bool resolve_sum(Modifiers& modifiers, Instruction& in) {
  const std::string_view name = kSubtracts ? "sub" : "add";
  if (!take_type(modifiers, in)) return false;
  if (is_float(in.type)) return resolve_float(name, modifiers, in);
  if (is_half(in.type)) return resolve_half(name, modifiers, in);
  if (modifiers.take("sat")) {
    in.detail = kSubtracts ? 1 : 0;
    in.handler = in.type == ScalarType::s32 ? &add_saturated : nullptr;
  } else if (modifiers.take("cc")) {
    in.detail = 2;
    in.handler = for_integer(in.type, []<class T>() -> Handler { return &add_with_carry<T, kSubtracts>; });
  } else {
    in.handler = binary_of<F>(in.type);
  }
  return true;
}

template <bool kSubtracts>
bool resolve_sum_with_carry(Modifiers& modifiers, Instruction& in) {
  if (!take_type(modifiers, in)) return false;
  in.detail = modifiers.take("cc") ? 3 : 1;
  in.handler = for_integer(in.type, []<class T>() -> Handler { return &add_with_carry<T, kSubtracts>; });
  return true;
}

bool resolve_multiply(Modifiers& modifiers, Instruction& in) {
  if (!take_type(modifiers, in)) return false;
  if (is_float(in.type)) return resolve_float("mul", modifiers, in);
  if (is_half(in.type)) return resolve_half("mul", modifiers, in);
  if (modifiers.take("wide")) {
    in.handler = size_of(in.type) == 8 ? nullptr : for_integer(in.type, []<class T>() -> Handler { return &multiply_wide<T>; });
  } else {
    in.handler = modifiers.take("hi") ? binary_of<MultiplyHigh>(in.type) : binary_of<MultiplyLow>(in.type);
    modifiers.take("lo");
  }
  return true;
}

bool resolve_multiply_add(Modifiers& modifiers, Instruction& in) {
  if (!take_type(modifiers, in)) return false;
  if (is_float(in.type)) return resolve_float("fma", modifiers, in);
  const bool takes_carry = modifiers.name() == "madc";
  const bool gives_carry = modifiers.take("cc");
  if (modifiers.take("wide")) {
    in.handler =
        size_of(in.type) == 8 ? nullptr : for_integer(in.type, []<class T>() -> Handler { return &multiply_add_wide<T>; });
    return true;
  }
  const bool high = modifiers.take("hi");
  modifiers.take("lo");
  in.detail = (takes_carry ? 1U : 0U) | (gives_carry ? 2U : 0U);
  if (in.detail == 0)
    in.handler = high ? ternary_of<MultiplyAddHigh>(in.type) : ternary_of<MultiplyAddLow>(in.type);
  else if (high)
    in.handler = for_integer(in.type, []<class T>() -> Handler { return &multiply_add_with_carry<T, MultiplyHigh>; });
  else
    in.handler = for_integer(in.type, []<class T>() -> Handler { return &multiply_add_with_carry<T, MultiplyLow>; });
  return true;
}

// An operation of integers that float and half types have too.
template <class F, bool kUnary>
bool resolve_shared_name(Modifiers& modifiers, Instruction& in) {
  if (!take_type(modifiers, in)) return false;
  if (is_float(in.type)) return resolve_float(modifiers.name(), modifiers, in);
  if (is_half(in.type)) return resolve_half(modifiers.name(), modifiers, in);
  if constexpr (kUnary)
    in.handler = unary_of<F>(in.type);
  else
    in.handler = binary_of<F>(in.type);
  return true;
}

bool resolve_remainder(Modifiers& modifiers, Instruction& in) {
  if (!take_type(modifiers, in)) return false;
  in.handler = binary_of<Remainder>(in.type);
  return true;
}

bool resolve_sum_of_difference(Modifiers& modifiers, Instruction& in) {
  if (!take_type(modifiers, in)) return false;
  in.handler = ternary_of<SumOfDifference>(in.type);
  return true;
}

constexpr std::array<OperationRow, 14> kRows{{
    {"add", &resolve_sum<Add, false>},
    {"sub", &resolve_sum<Subtract, true>},
    {"addc", &resolve_sum_with_carry<false>},
    {"subc", &resolve_sum_with_carry<true>},
    {"mul", &resolve_multiply},
    {"mad", &resolve_multiply_add},
    {"madc", &resolve_multiply_add},
    {"div", &resolve_shared_name<Divide, false>},
    {"rem", &resolve_remainder},
    {"min", &resolve_shared_name<Minimum, false>},
    {"max", &resolve_shared_name<Maximum, false>},
    {"neg", &resolve_shared_name<Negate, true>},
    {"abs", &resolve_shared_name<Absolute, true>},
    {"sad", &resolve_sum_of_difference},
}};

}  // namespace

std::span<const OperationRow> integer_operations() { return kRows; }

}  // namespace seto::software_gpu
