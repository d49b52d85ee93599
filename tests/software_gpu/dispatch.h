#pragma once

#include <cstdint>

#include "tests/software_gpu/instruction.h"
#include "tests/software_gpu/modifiers.h"
#include "tests/software_gpu/operation_table.h"
#include "tests/software_gpu/thread.h"

namespace seto::software_gpu {

// Calls make.operator()<T>() with the C++ type of a PTX type, and gives the handler that it returns; nullptr for other types. Bit
// types are unsigned.
template <class Make>
[[nodiscard]] Handler for_integer(ScalarType type, const Make& make) {
  switch (type) {
    case ScalarType::u16:
    case ScalarType::b16:
      return make.template operator()<std::uint16_t>();
    case ScalarType::u32:
    case ScalarType::b32:
      return make.template operator()<std::uint32_t>();
    case ScalarType::u64:
    case ScalarType::b64:
      return make.template operator()<std::uint64_t>();
    case ScalarType::s16:
      return make.template operator()<std::int16_t>();
    case ScalarType::s32:
      return make.template operator()<std::int32_t>();
    case ScalarType::s64:
      return make.template operator()<std::int64_t>();
    default:
      return nullptr;
  }
}

template <class Make>
[[nodiscard]] Handler for_float(ScalarType type, const Make& make) {
  switch (type) {
    case ScalarType::f32:
      return make.template operator()<float>();
    case ScalarType::f64:
      return make.template operator()<double>();
    default:
      return nullptr;
  }
}

// d = F(a), d = F(a, b), d = F(a, b, c), all of type T.
template <class T, class F>
void unary(Thread& thread, const Instruction& in) {
  thread.set<T>(in.d[0], F{}(thread.get<T>(in.s[0])));
}
template <class T, class F>
void binary(Thread& thread, const Instruction& in) {
  thread.set<T>(in.d[0], F{}(thread.get<T>(in.s[0]), thread.get<T>(in.s[1])));
}
template <class T, class F>
void ternary(Thread& thread, const Instruction& in) {
  thread.set<T>(in.d[0], F{}(thread.get<T>(in.s[0]), thread.get<T>(in.s[1]), thread.get<T>(in.s[2])));
}

// Takes the type; false if there is none.
[[nodiscard]] inline bool take_type(Modifiers& modifiers, Instruction& in) {
  const auto type = modifiers.take_type();
  in.type = type.value_or(ScalarType::b32);
  return type.has_value();
}

// Packed and half types are handled in a group of their own, which other groups leave them to.
[[nodiscard]] constexpr bool is_half(ScalarType type) {
  return type == ScalarType::f16 || type == ScalarType::f16x2 || type == ScalarType::bf16 || type == ScalarType::bf16x2;
}
// Operations of half types, by the name of the opcode.
[[nodiscard]] bool resolve_half(std::string_view name, Modifiers& modifiers, Instruction& in);
// Likewise of f32 and f64.
[[nodiscard]] bool resolve_float(std::string_view name, Modifiers& modifiers, Instruction& in);

}  // namespace seto::software_gpu
