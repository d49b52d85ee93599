// cvt between all types, with rounding and saturation.
#include <array>
#include <bit>
#include <cmath>

#include "tests/software_gpu/dispatch.h"
#include "tests/software_gpu/float_formats.h"

namespace seto::software_gpu {
namespace {

// `detail` of this group: source type, rounding, rounding to an integer; `flags` as follows.
constexpr std::uint32_t kSaturate = 1, kFlush = 2, kRelu = 4, kFinite = 8;
enum class IntegerRounding : std::uint8_t { none, nearest, zero, down, up };

ScalarType source_type(const Instruction& in) { return static_cast<ScalarType>(in.detail & 0xFF); }
Rounding rounding(const Instruction& in) { return static_cast<Rounding>((in.detail >> 8) & 0xFF); }
IntegerRounding integer_rounding(const Instruction& in) { return static_cast<IntegerRounding>((in.detail >> 16) & 0xFF); }

bool is_real(ScalarType type) { return is_float(type) || type == ScalarType::f16 || type == ScalarType::bf16; }

std::uint64_t extended(std::uint64_t bits, ScalarType type) {
  return is_signed(type) ? sign_extended(bits, size_of(type)) : bits & low_mask(size_of(type));
}

// The least and the greatest value of an integer type, as signed and unsigned bits.
struct Range {
  std::uint64_t least, greatest;
};
Range range_of(ScalarType type) {
  const std::uint64_t mask = low_mask(size_of(type));
  return is_signed(type) ? Range{sign_extended((mask >> 1) + 1, size_of(type)), mask >> 1} : Range{0, mask};
}

void integer_to_integer(Thread& thread, const Instruction& in) {
  thread.set_bits(in.d[0], extended(extended(thread.bits(in.s[0]), source_type(in)), in.type));
}

void integer_to_integer_saturated(Thread& thread, const Instruction& in) {
  const std::uint64_t value = extended(thread.bits(in.s[0]), source_type(in));
  const Range range = range_of(in.type);
  const bool negative = is_signed(source_type(in)) && static_cast<std::int64_t>(value) < 0;
  std::uint64_t result = value;
  if (negative) {
    const bool below = !is_signed(in.type) || static_cast<std::int64_t>(value) < static_cast<std::int64_t>(range.least);
    result = below ? range.least : value;
  } else if (value > range.greatest) {
    result = range.greatest;
  }
  thread.set_bits(in.d[0], result);
}

double real_source(const Thread& thread, const Operand& operand, ScalarType type) {
  switch (type) {
    case ScalarType::f32:
      return thread.get<float>(operand);
    case ScalarType::f64:
      return thread.get<double>(operand);
    default:
      return decoded(thread.get<std::uint16_t>(operand), type == ScalarType::f16 ? kHalf : kBfloat);
  }
}

double rounded_to_integer(double value, IntegerRounding how) {
  switch (how) {
    case IntegerRounding::nearest:
      return std::nearbyint(value);
    case IntegerRounding::zero:
      return std::trunc(value);
    case IntegerRounding::down:
      return std::floor(value);
    case IntegerRounding::up:
      return std::ceil(value);
    case IntegerRounding::none:
      return value;
  }
  return value;
}

// Too large values become the nearest that the type has, a NaN becomes 0.
void real_to_integer(Thread& thread, const Instruction& in) {
  const double value = rounded_to_integer(real_source(thread, in.s[0], source_type(in)), integer_rounding(in));
  const Range range = range_of(in.type);
  const double least = is_signed(in.type) ? static_cast<double>(static_cast<std::int64_t>(range.least)) : 0;
  std::uint64_t result = 0;
  if (std::isnan(value)) {
    result = 0;
  } else if (value <= least) {
    result = range.least;
  } else if (value >= static_cast<double>(range.greatest)) {
    result = range.greatest;
  } else {
    result =
        is_signed(in.type) ? static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) : static_cast<std::uint64_t>(value);
  }
  thread.set_bits(in.d[0], result);
}

std::uint64_t encoded_as(double value, ScalarType type, const Instruction& in) {
  if ((in.flags & kRelu) != 0 && !(value > 0) && !std::isnan(value)) value = 0;
  if ((in.flags & kSaturate) != 0) value = value > 0 ? std::min(value, 1.0) : 0.0;
  const bool finite = (in.flags & kFinite) != 0;
  switch (type) {
    case ScalarType::f64:
      return std::bit_cast<std::uint64_t>(value);
    case ScalarType::f32: {
      std::uint32_t bits = encoded(value, kSingle, rounding(in), false);
      if ((in.flags & kFlush) != 0 && (bits & 0x7F800000U) == 0) bits &= 0x80000000U;
      return bits;
    }
    case ScalarType::f16:
    case ScalarType::f16x2:
      return encoded(value, kHalf, rounding(in), finite);
    case ScalarType::bf16:
    case ScalarType::bf16x2:
      return encoded(value, kBfloat, rounding(in), finite);
    default:
      return encoded(value, type == ScalarType::e4m3x2 ? kE4m3 : kE5m2, rounding(in), finite);
  }
}

void real_to_real(Thread& thread, const Instruction& in) {
  double value = real_source(thread, in.s[0], source_type(in));
  if ((in.flags & kFlush) != 0 && source_type(in) == ScalarType::f32 && std::fabs(value) < 0x1p-126)
    value = std::copysign(0.0, value);
  thread.set_bits(in.d[0], encoded_as(rounded_to_integer(value, integer_rounding(in)), in.type, in));
}

// A double from which each narrower format is rounded as from the integer itself: bits that do not fit leave a mark in the last
// one.
double sticky_double(std::uint64_t magnitude) {
  if (magnitude < (1ULL << 53)) return static_cast<double>(magnitude);
  return static_cast<double>((magnitude >> 11) | ((magnitude & 0x7FF) != 0 ? 1U : 0U)) * 2048.0;
}

void integer_to_real(Thread& thread, const Instruction& in) {
  const std::uint64_t value = extended(thread.bits(in.s[0]), source_type(in));
  const bool negative = is_signed(source_type(in)) && static_cast<std::int64_t>(value) < 0;
  const std::uint64_t magnitude = negative ? 0 - value : value;
  if (in.type == ScalarType::f64) {
    const HostRounding scope(rounding(in));
    volatile double result = 0;
    if (negative) {
      const volatile auto source = static_cast<std::int64_t>(value);
      result = static_cast<double>(source);
    } else {
      const volatile std::uint64_t source = value;
      result = static_cast<double>(source);
    }
    thread.set<double>(in.d[0], result);
    return;
  }
  const double real = sticky_double(magnitude);
  thread.set_bits(in.d[0], encoded_as(negative ? -real : real, in.type, in));
}

// Two f32 to a pair; the first operand becomes the upper half.
void reals_to_pair(Thread& thread, const Instruction& in) {
  const std::uint32_t half = 4 * size_of(in.type);  // bits
  const std::uint64_t high = encoded_as(thread.get<float>(in.s[0]), in.type, in);
  const std::uint64_t low = encoded_as(thread.get<float>(in.s[1]), in.type, in);
  thread.set_bits(in.d[0], (high << half) | low);
}

const FloatFormat& format_of_pair(ScalarType type) {
  switch (type) {
    case ScalarType::f16x2:
      return kHalf;
    case ScalarType::bf16x2:
      return kBfloat;
    case ScalarType::e4m3x2:
      return kE4m3;
    default:
      return kE5m2;
  }
}

void pair_to_pair(Thread& thread, const Instruction& in) {
  const ScalarType from = source_type(in);
  const std::uint32_t from_bits = 4 * size_of(from);
  const std::uint32_t to_bits = 4 * size_of(in.type);
  const auto pair = thread.get<std::uint32_t>(in.s[0]);
  std::uint64_t result = 0;
  for (std::uint32_t i = 0; i < 2; ++i) {
    const std::uint32_t half = (pair >> (i * from_bits)) & ((1U << from_bits) - 1);
    result |= encoded_as(decoded(half, format_of_pair(from)), in.type, in) << (i * to_bits);
  }
  thread.set_bits(in.d[0], result);
}

bool is_pair(ScalarType type) {
  return type == ScalarType::f16x2 || type == ScalarType::bf16x2 || type == ScalarType::e4m3x2 || type == ScalarType::e5m2x2;
}

Handler handler_for(ScalarType to, ScalarType from, bool saturates) {
  if (is_pair(to)) return is_pair(from) ? &pair_to_pair : from == ScalarType::f32 ? &reals_to_pair : nullptr;
  if (to == ScalarType::pred || to == ScalarType::b128 || is_pair(from) || from == ScalarType::pred) return nullptr;
  if (is_real(to)) return is_real(from) ? &real_to_real : &integer_to_real;
  if (is_real(from)) return &real_to_integer;
  return saturates ? &integer_to_integer_saturated : &integer_to_integer;
}

bool resolve_convert(Modifiers& modifiers, Instruction& in) {
  if (!take_type(modifiers, in)) return false;
  const auto from = modifiers.take_type();
  if (!from) return false;
  constexpr std::array<std::string_view, 4> kIntegerRoundings{"rni", "rzi", "rmi", "rpi"};
  const auto to_integer = static_cast<std::uint32_t>(modifiers.take_one_of(kIntegerRoundings) + 1);
  in.detail =
      static_cast<std::uint32_t>(*from) | (static_cast<std::uint32_t>(take_rounding(modifiers)) << 8) | (to_integer << 16);
  in.flags = (modifiers.take("sat") ? kSaturate : 0U) | (modifiers.take("ftz") ? kFlush : 0U) |
             (modifiers.take("relu") ? kRelu : 0U) | (modifiers.take("satfinite") ? kFinite : 0U);
  in.handler = handler_for(in.type, *from, (in.flags & kSaturate) != 0);
  const std::uint32_t sources = in.handler == &reals_to_pair ? 2 : 1;
  return in.sources == sources;
}

constexpr std::array<OperationRow, 1> kRows{{{"cvt", &resolve_convert}}};

}  // namespace

std::span<const OperationRow> convert_operations() { return kRows; }

}  // namespace seto::software_gpu
