// mov, with packing and unpacking; addresses between spaces.
#include <array>

#include "tests/software_gpu/address_space.h"
#include "tests/software_gpu/dispatch.h"

namespace seto::software_gpu {
namespace {

void move(Thread& thread, const Instruction& in) { thread.set_bits(in.d[0], thread.bits(in.s[0]) & low_mask(size_of(in.type))); }
void move_wide(Thread& thread, const Instruction& in) { thread.set_wide(in.d[0], thread.wide(in.s[0])); }
void move_predicate(Thread& thread, const Instruction& in) { thread.set_bits(in.d[0], thread.predicate(in.s[0]) ? 1 : 0); }

// {a, b} -> d and d -> {a, b}: the first element has the low bits.
void pack(Thread& thread, const Instruction& in) {
  const std::uint32_t bytes = size_of(in.type) / in.sources;
  std::uint64_t value = 0;
  for (std::uint32_t i = 0; i < in.sources; ++i) value |= (thread.bits(in.s[i]) & low_mask(bytes)) << (8 * bytes * i);
  thread.set_bits(in.d[0], value);
}
void unpack(Thread& thread, const Instruction& in) {
  const std::uint32_t bytes = size_of(in.type) / in.destinations;
  const std::uint64_t value = thread.bits(in.s[0]);
  for (std::uint32_t i = 0; i < in.destinations; ++i) thread.set_bits(in.d[i], (value >> (8 * bytes * i)) & low_mask(bytes));
}
void pack_wide(Thread& thread, const Instruction& in) { thread.set_wide(in.d[0], {thread.bits(in.s[0]), thread.bits(in.s[1])}); }
void unpack_wide(Thread& thread, const Instruction& in) {
  const Bits128 value = thread.wide(in.s[0]);
  thread.set_bits(in.d[0], value.low);
  thread.set_bits(in.d[1], value.high);
}

bool resolve_move(Modifiers& modifiers, Instruction& in) {
  if (!take_type(modifiers, in) || in.sources == 0) return false;
  const std::uint32_t parts = in.sources > 1 ? in.sources : in.destinations;
  if (in.type == ScalarType::b128)
    in.handler = parts == 1 ? &move_wide : parts != 2 ? nullptr : in.sources == 2 ? &pack_wide : &unpack_wide;
  else if (in.type == ScalarType::pred)
    in.handler = &move_predicate;
  else if (parts == 1)
    in.handler = &move;
  else
    in.handler = size_of(in.type) % parts != 0 ? nullptr : in.sources > 1 ? &pack : &unpack;
  return true;
}

Space take_space(Modifiers& modifiers) {
  if (modifiers.take("shared") || modifiers.take("shared::cta")) return Space::shared;
  if (modifiers.take("local")) return Space::local;
  if (modifiers.take("param") || modifiers.take("param::entry")) return Space::param;
  if (modifiers.take("const")) return Space::constant;
  return modifiers.take("global") ? Space::global : Space::generic;
}

// detail: 1 from generic to a space, 0 from the space to generic.
void convert_address(Thread& thread, const Instruction& in) {
  const std::uint64_t address = thread.bits(in.s[0]);
  thread.set_bits(in.d[0],
                  in.detail == 1 ? address & ~(window_of(in.space) == 0 ? 0 : kWindowMask) : address | window_of(in.space));
}

bool resolve_convert_address(Modifiers& modifiers, Instruction& in) {
  in.detail = modifiers.take("to") ? 1 : 0;
  in.space = take_space(modifiers);
  if (in.space == Space::generic || !take_type(modifiers, in)) return false;
  in.handler = &convert_address;
  return true;
}

void is_in_space(Thread& thread, const Instruction& in) {
  thread.set_bits(in.d[0], (thread.bits(in.s[0]) & kWindowMask) == window_of(in.space) ? 1 : 0);
}

bool resolve_is_in_space(Modifiers& modifiers, Instruction& in) {
  in.space = take_space(modifiers);
  in.handler = in.space == Space::generic || in.space == Space::constant ? nullptr : &is_in_space;
  return true;
}

constexpr std::array<OperationRow, 3> kRows{{
    {"mov", &resolve_move},
    {"cvta", &resolve_convert_address},
    {"isspacep", &resolve_is_in_space},
}};

}  // namespace

std::span<const OperationRow> move_operations() { return kRows; }

}  // namespace seto::software_gpu
