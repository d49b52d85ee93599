// Logic, shifts and bit fields.
#include <algorithm>
#include <array>
#include <bit>

#include "tests/software_gpu/dispatch.h"

namespace seto::software_gpu {
namespace {

enum class Logic : std::uint8_t { conjunction, disjunction, exclusive };

// Registers hold zeros above the size of their value, so and, or and xor need no size. Predicates may be negated.
template <Logic kWhich>
void logic(Thread& thread, const Instruction& in) {
  const std::uint64_t mask = low_mask(size_of(in.type));
  const std::uint64_t a = thread.bits(in.s[0]) & mask;
  const std::uint64_t b = thread.bits(in.s[1]) & mask;
  thread.set_bits(in.d[0], kWhich == Logic::conjunction ? a & b : kWhich == Logic::disjunction ? a | b : a ^ b);
}
template <Logic kWhich>
void predicate_logic(Thread& thread, const Instruction& in) {
  const bool a = thread.predicate(in.s[0]);
  const bool b = thread.predicate(in.s[1]);
  const bool result = kWhich == Logic::conjunction ? a && b : kWhich == Logic::disjunction ? a || b : a != b;
  thread.set_bits(in.d[0], result ? 1 : 0);
}

template <Logic kWhich>
bool resolve_logic(Modifiers& modifiers, Instruction& in) {
  if (!take_type(modifiers, in)) return false;
  in.handler = in.type == ScalarType::pred ? &predicate_logic<kWhich> : &logic<kWhich>;
  return true;
}

void complement(Thread& thread, const Instruction& in) {
  thread.set_bits(in.d[0], ~thread.bits(in.s[0]) & low_mask(size_of(in.type)));
}
void complement_predicate(Thread& thread, const Instruction& in) { thread.set_bits(in.d[0], thread.predicate(in.s[0]) ? 0 : 1); }

bool resolve_complement(Modifiers& modifiers, Instruction& in) {
  if (!take_type(modifiers, in)) return false;
  const bool counts = modifiers.name() == "cnot";
  in.handler = in.type == ScalarType::pred ? &complement_predicate : &complement;
  if (counts) {
    in.handler = [](Thread& thread, const Instruction& i) {
      thread.set_bits(i.d[0], (thread.bits(i.s[0]) & low_mask(size_of(i.type))) == 0 ? 1 : 0);
    };
  }
  return true;
}

// A shift by the size or more gives zeros, or copies of the sign.
template <class T>
void shift_left(Thread& thread, const Instruction& in) {
  const auto count = thread.get<std::uint32_t>(in.s[1]);
  thread.set<T>(in.d[0],
                count >= 8 * sizeof(T)
                    ? T{0}
                    : static_cast<T>(std::uint64_t{static_cast<std::make_unsigned_t<T>>(thread.get<T>(in.s[0]))} << count));
}
template <class T>
void shift_right(Thread& thread, const Instruction& in) {
  const std::uint32_t most = 8 * sizeof(T);
  const auto count = thread.get<std::uint32_t>(in.s[1]);
  const T value = thread.get<T>(in.s[0]);
  if (count >= most)
    thread.set<T>(in.d[0], value < 0 ? static_cast<T>(-1) : T{0});
  else
    thread.set<T>(in.d[0], static_cast<T>(value >> count));
}

bool resolve_shift_left(Modifiers& modifiers, Instruction& in) {
  if (!take_type(modifiers, in)) return false;
  in.handler = for_integer(in.type, []<class T>() -> Handler { return &shift_left<T>; });
  return true;
}
bool resolve_shift_right(Modifiers& modifiers, Instruction& in) {
  if (!take_type(modifiers, in)) return false;
  in.handler = for_integer(in.type, []<class T>() -> Handler { return &shift_right<T>; });
  return true;
}

// detail: bit 0: to the right; bit 1: the count is clamped to 32, else it wraps.
void funnel_shift(Thread& thread, const Instruction& in) {
  const auto low = thread.get<std::uint32_t>(in.s[0]);
  const auto high = thread.get<std::uint32_t>(in.s[1]);
  const auto asked = thread.get<std::uint32_t>(in.s[2]);
  const std::uint32_t count = (in.detail & 2) != 0 ? std::min(asked, 32U) : asked & 31U;
  const std::uint64_t both = (std::uint64_t{high} << 32) | low;
  thread.set(in.d[0], static_cast<std::uint32_t>((in.detail & 1) != 0 ? both >> count : (both << count) >> 32));
}

bool resolve_funnel_shift(Modifiers& modifiers, Instruction& in) {
  const bool right = modifiers.take("r");
  if (!right && !modifiers.take("l")) return false;
  const bool clamped = modifiers.take("clamp");
  if ((!clamped && !modifiers.take("wrap")) || !take_type(modifiers, in)) return false;
  in.detail = (right ? 1U : 0U) | (clamped ? 2U : 0U);
  in.handler = in.type == ScalarType::b32 ? &funnel_shift : nullptr;
  return true;
}

void lookup_logic(Thread& thread, const Instruction& in) {
  const auto a = thread.get<std::uint32_t>(in.s[0]);
  const auto b = thread.get<std::uint32_t>(in.s[1]);
  const auto c = thread.get<std::uint32_t>(in.s[2]);
  const auto table = thread.get<std::uint32_t>(in.s[3]);
  std::uint32_t result = 0;
  for (std::uint32_t row = 0; row < 8; ++row)
    if (((table >> row) & 1) != 0) result |= ((row & 4) != 0 ? a : ~a) & ((row & 2) != 0 ? b : ~b) & ((row & 1) != 0 ? c : ~c);
  thread.set(in.d[0], result);
}

bool resolve_lookup_logic(Modifiers& modifiers, Instruction& in) {
  if (!take_type(modifiers, in) || in.type != ScalarType::b32 || in.sources != 4) return false;
  in.handler = &lookup_logic;
  return true;
}

constexpr std::array<std::string_view, 6> kPermuteModes{"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};

// The byte numbers that a mode of prmt selects, one nibble each, from the number in the low bits of c.
std::uint32_t permute_selector(std::uint32_t mode, std::uint32_t number) {
  const std::uint32_t n = number & 3;
  std::uint32_t selector = 0;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::array<std::uint32_t, 6> byte{n + i, (n + 8 - i) & 7, n, std::max(i, n), std::min(i, n), ((n & 1) * 2) + (i & 1)};
    selector |= byte[mode] << (4 * i);
  }
  return selector;
}

// detail: 0, or the number of the mode and one.
void permute(Thread& thread, const Instruction& in) {
  const std::uint64_t bytes = (std::uint64_t{thread.get<std::uint32_t>(in.s[1])} << 32) | thread.get<std::uint32_t>(in.s[0]);
  const auto control = thread.get<std::uint32_t>(in.s[2]);
  const std::uint32_t selector = in.detail == 0 ? control : permute_selector(in.detail - 1, control);
  std::uint32_t result = 0;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t nibble = (selector >> (4 * i)) & 15;
    std::uint32_t byte = static_cast<std::uint32_t>(bytes >> (8 * (nibble & 7))) & 0xFF;
    if ((nibble & 8) != 0) byte = (byte & 0x80) != 0 ? 0xFF : 0;  // copies of the sign
    result |= byte << (8 * i);
  }
  thread.set(in.d[0], result);
}

bool resolve_permute(Modifiers& modifiers, Instruction& in) {
  in.detail = static_cast<std::uint32_t>(modifiers.take_one_of(kPermuteModes) + 1);
  in.handler = take_type(modifiers, in) && in.type == ScalarType::b32 ? &permute : nullptr;
  return true;
}

template <class T>
void extract_field(Thread& thread, const Instruction& in) {
  using Unsigned = std::make_unsigned_t<T>;
  constexpr std::uint32_t kSize = 8 * sizeof(T);
  const auto value = thread.get<Unsigned>(in.s[0]);
  const std::uint32_t first = thread.get<std::uint32_t>(in.s[1]) & 0xFF;
  const std::uint32_t length = thread.get<std::uint32_t>(in.s[2]) & 0xFF;
  const std::uint32_t last = std::min(first + length - 1, kSize - 1);
  const bool sign = std::is_signed_v<T> && length > 0 && ((value >> last) & 1) != 0;
  Unsigned result = 0;
  for (std::uint32_t i = 0; i < kSize; ++i) {
    const bool bit = i < length && first + i < kSize ? ((value >> (first + i)) & 1) != 0 : sign;
    result = static_cast<Unsigned>(result | (Unsigned{bit} << i));
  }
  thread.set<Unsigned>(in.d[0], result);
}

template <class T>
void insert_field(Thread& thread, const Instruction& in) {
  constexpr std::uint32_t kSize = 8 * sizeof(T);
  const T value = thread.get<T>(in.s[0]);
  T result = thread.get<T>(in.s[1]);
  const std::uint32_t first = thread.get<std::uint32_t>(in.s[2]) & 0xFF;
  const std::uint32_t length = thread.get<std::uint32_t>(in.s[3]) & 0xFF;
  for (std::uint32_t i = 0; i < length && first + i < kSize; ++i) {
    const T bit = static_cast<T>(T{1} << (first + i));
    result = ((value >> i) & 1) != 0 ? static_cast<T>(result | bit) : static_cast<T>(result & static_cast<T>(~bit));
  }
  thread.set<T>(in.d[0], result);
}

template <bool kInserts>
bool resolve_field(Modifiers& modifiers, Instruction& in) {
  if (!take_type(modifiers, in) || size_of(in.type) < 4) return false;
  if constexpr (kInserts)
    in.handler = size_of(in.type) == 4 ? &insert_field<std::uint32_t> : &insert_field<std::uint64_t>;
  else
    in.handler = for_integer(in.type, []<class T>() -> Handler { return &extract_field<T>; });
  return true;
}

enum class Count : std::uint8_t { ones, leading_zeros, highest, highest_as_shift };

template <class T, Count kWhich>
void count_bits(Thread& thread, const Instruction& in) {
  using Unsigned = std::make_unsigned_t<T>;
  constexpr int kSize = 8 * sizeof(T);
  auto value = thread.get<Unsigned>(in.s[0]);
  int result = 0;
  if constexpr (kWhich == Count::ones) {
    result = std::popcount(value);
  } else if constexpr (kWhich == Count::leading_zeros) {
    result = std::countl_zero(value);
  } else {
    if (std::is_signed_v<T> && (value >> (kSize - 1)) != 0)
      value = static_cast<Unsigned>(~value);  // of a negative number, the highest zero
    const int zeros = std::countl_zero(value);
    result = zeros == kSize ? -1 : kWhich == Count::highest ? kSize - 1 - zeros : zeros;
  }
  thread.set(in.d[0], static_cast<std::uint32_t>(result));
}

template <Count kWhich>
bool resolve_count(Modifiers& modifiers, Instruction& in) {
  if (!take_type(modifiers, in)) return false;
  in.handler = for_integer(in.type, []<class T>() -> Handler { return &count_bits<T, kWhich>; });
  return true;
}
bool resolve_find(Modifiers& modifiers, Instruction& in) {
  return modifiers.take("shiftamt") ? resolve_count<Count::highest_as_shift>(modifiers, in)
                                    : resolve_count<Count::highest>(modifiers, in);
}

template <class T>
void reverse_bits(Thread& thread, const Instruction& in) {
  const T value = thread.get<T>(in.s[0]);
  T result = 0;
  for (std::uint32_t i = 0; i < 8 * sizeof(T); ++i) result = static_cast<T>((result << 1) | ((value >> i) & 1));
  thread.set<T>(in.d[0], result);
}

bool resolve_reverse(Modifiers& modifiers, Instruction& in) {
  if (!take_type(modifiers, in)) return false;
  in.handler = size_of(in.type) == 4 ? &reverse_bits<std::uint32_t> : &reverse_bits<std::uint64_t>;
  return true;
}

constexpr std::array<OperationRow, 16> kRows{{
    {"and", &resolve_logic<Logic::conjunction>},
    {"or", &resolve_logic<Logic::disjunction>},
    {"xor", &resolve_logic<Logic::exclusive>},
    {"not", &resolve_complement},
    {"cnot", &resolve_complement},
    {"shl", &resolve_shift_left},
    {"shr", &resolve_shift_right},
    {"shf", &resolve_funnel_shift},
    {"lop3", &resolve_lookup_logic},
    {"prmt", &resolve_permute},
    {"bfe", &resolve_field<false>},
    {"bfi", &resolve_field<true>},
    {"popc", &resolve_count<Count::ones>},
    {"clz", &resolve_count<Count::leading_zeros>},
    {"bfind", &resolve_find},
    {"brev", &resolve_reverse},
}};

}  // namespace

std::span<const OperationRow> bit_operations() { return kRows; }

}  // namespace seto::software_gpu
