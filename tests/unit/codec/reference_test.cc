#include "tests/unit/codec/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace seto::reference {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A float format as textbooks define it.
struct Grid {
  int exponent_bits;
  int fraction_bits;
  bool has_infinity;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int lowest() const { return 1 - bias(); }
  int top() const { return has_infinity ? bias() : bias() + 1; }
  double largest() const { return std::ldexp(2 - std::ldexp(has_infinity ? 1.0 : 2.0, -fraction_bits), top()); }
  unsigned sign() const { return 1u << (exponent_bits + fraction_bits); }
  unsigned infinity() const { return ((1u << exponent_bits) - 1) << fraction_bits; }
  unsigned nan() const { return has_infinity ? infinity() + (1u << (fraction_bits - 1)) : sign() - 1; }

  double value(unsigned code) const {
    const double sign_factor = (code & sign()) != 0 ? -1 : 1;
    const unsigned magnitude = code & (sign() - 1);
    if (has_infinity ? magnitude > infinity() : magnitude == nan()) return kNan;
    if (has_infinity && magnitude == infinity()) return sign_factor * INFINITY;
    const int field = static_cast<int>(magnitude >> fraction_bits);
    const double fraction = std::ldexp(magnitude & ((1u << fraction_bits) - 1), -fraction_bits);
    return sign_factor * (field == 0 ? std::ldexp(fraction, lowest()) : std::ldexp(1 + fraction, field - bias()));
  }

  // The code nearest to a finite value; values beyond the largest code become the largest.
  unsigned code(double value) const {
    const unsigned of_sign = std::signbit(value) ? sign() : 0;
    value = std::min(std::abs(value), largest());
    const int exponent = value == 0 ? lowest() : std::max(std::ilogb(value), lowest());
    const double rounded =
        std::min(std::ldexp(std::rint(std::ldexp(value, fraction_bits - exponent)), exponent - fraction_bits), largest());
    if (rounded < std::ldexp(1, lowest())) return of_sign | static_cast<unsigned>(std::ldexp(rounded, fraction_bits - lowest()));
    const int field = std::ilogb(rounded) + bias();
    const double fraction = std::ldexp(rounded, -std::ilogb(rounded)) - 1;
    return of_sign | static_cast<unsigned>(field) << fraction_bits | static_cast<unsigned>(std::ldexp(fraction, fraction_bits));
  }

  unsigned code_of_any(double value, double scaled) const {
    if (std::isnan(value)) return nan();
    if (std::isinf(value)) return has_infinity ? infinity() | (value < 0 ? sign() : 0) : nan();
    return code(scaled);
  }
};

Grid grid_of(Codec codec) {
  switch (codec) {
    case Codec::fp16:
      return {5, 10, true};
    case Codec::bf16:
      return {8, 7, true};
    case Codec::e4m3:
      return {4, 3, false};
    case Codec::e5m2:
      return {5, 2, true};
    case Codec::int8:
    case Codec::int4:
      break;
  }
  ADD_FAILURE() << "no float format: codec " << static_cast<int>(codec);
  return {5, 2, true};
}

int largest_integer(Codec codec) {
  if (codec == Codec::int8) return 127;
  if (codec == Codec::int4) return 7;
  ADD_FAILURE() << "no integer format: codec " << static_cast<int>(codec);
  return 7;
}

// No default: the compiler asks about a new codec.
bool is_float(Codec codec) {
  switch (codec) {
    case Codec::fp16:
    case Codec::bf16:
    case Codec::e4m3:
    case Codec::e5m2:
      return true;
    case Codec::int8:
    case Codec::int4:
      return false;
  }
  return false;
}

void append(Bytes& bytes, unsigned value, std::size_t size) {
  for (std::size_t k = 0; k < size; ++k) bytes.push_back(static_cast<std::uint8_t>(value >> (8 * k)));
}

void append_header(Bytes& bytes, int exponent, unsigned fraction) {
  append(bytes, static_cast<unsigned>(exponent) & 0xFFFF, 2);
  append(bytes, fraction, 2);
}

void append_floats(Bytes& bytes, Codec codec, const std::vector<double>& block, double largest) {
  const Grid grid = grid_of(codec);
  int exponent = 0;
  if (codec != Codec::bf16) {
    if (largest != 0) {
      exponent = std::ilogb(largest) - grid.top();
      if (std::ldexp(largest, -exponent) > grid.largest()) ++exponent;
    }
    append_header(bytes, exponent, 0);
  }
  for (const double value : block) append(bytes, grid.code_of_any(value, std::ldexp(value, -exponent)), facts_of(codec).bits / 8);
}

void append_integers(Bytes& bytes, Codec codec, DataType type, const std::vector<double>& block, double largest) {
  const bool all_finite = std::all_of(block.begin(), block.end(), [](double value) { return std::isfinite(value); });
  const int most = largest_integer(codec);
  int exponent = 0;
  double significand = 1;
  if (all_finite && largest != 0) {
    exponent = std::ilogb(largest);
    const double scale = std::ldexp(largest, -exponent) / most;
    const int shift = std::ilogb(scale);
    significand = std::ldexp(std::ceil(std::ldexp(scale, 16 - shift)), -16);
    exponent += shift;
    if (significand == 2) significand = 1, ++exponent;
  }
  append_header(bytes, all_finite ? exponent : 32767, static_cast<unsigned>(std::ldexp(significand - 1, 16)));
  std::vector<unsigned> codes;
  for (const double value : block) {
    double scaled = 0;
    if (all_finite && type == DataType::float64) scaled = std::ldexp(value, -exponent) * (1 / significand);
    if (all_finite && type != DataType::float64)
      scaled = static_cast<float>(std::ldexp(value, -exponent) * static_cast<float>(1 / significand));
    codes.push_back(static_cast<unsigned>(static_cast<int>(std::rint(scaled))) & (codec == Codec::int8 ? 0xFFu : 0xFu));
  }
  if (codec == Codec::int8) {
    for (const unsigned code : codes) append(bytes, code, 1);
  } else {
    codes.push_back(0);
    for (std::size_t i = 0; i + 1 < codes.size(); i += 2) append(bytes, codes[i] | codes[i + 1] << 4, 1);
  }
}

double rounded_to(DataType type, double value) {
  if (!std::isfinite(value)) return value;
  const double most = type == DataType::float64   ? std::numeric_limits<double>::max()
                      : type == DataType::float32 ? static_cast<double>(std::numeric_limits<float>::max())
                                                  : grid_of(Codec::bf16).largest();
  const double within = std::clamp(value, -most, most);
  if (type == DataType::float64) return within;
  if (type == DataType::float32) return static_cast<float>(within);
  const Grid brain = grid_of(Codec::bf16);
  return brain.value(brain.code(static_cast<float>(within)));
}

}  // namespace

double number_at(DataType type, const void* numbers, std::size_t i) {
  const auto* bytes = static_cast<const std::uint8_t*>(numbers) + i * size_of(type);
  if (type == DataType::float64) {
    double value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  float value;
  std::uint32_t bits = 0;
  std::memcpy(&bits, bytes, size_of(type));
  if (type == DataType::bfloat16) bits <<= 16;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

void set_number(DataType type, void* numbers, std::size_t i, double value) {
  auto* bytes = static_cast<std::uint8_t*>(numbers) + i * size_of(type);
  if (type == DataType::float64) {
    std::memcpy(bytes, &value, sizeof value);
  } else if (type == DataType::float32) {
    const auto narrow = static_cast<float>(value);
    std::memcpy(bytes, &narrow, sizeof narrow);
  } else {
    const Grid brain = grid_of(Codec::bf16);
    const auto code = static_cast<std::uint16_t>(brain.code_of_any(value, value));
    std::memcpy(bytes, &code, sizeof code);
  }
}

Bytes encoded(Codec codec, DataType type, const void* numbers, std::size_t count) {
  Bytes bytes;
  const std::size_t block = facts_of(codec).block;
  for (std::size_t start = 0; start < count; start += block) {
    std::vector<double> values;
    for (std::size_t i = start; i < std::min(count, start + block); ++i) values.push_back(number_at(type, numbers, i));
    double largest = 0;
    for (const double value : values) largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
    if (is_float(codec)) {
      append_floats(bytes, codec, values, largest);
    } else {
      append_integers(bytes, codec, type, values, largest);
    }
  }
  return bytes;
}

std::vector<double> decoded(Codec codec, DataType type, const Bytes& bytes, std::size_t count) {
  const CodecFacts& facts = facts_of(codec);
  std::vector<double> numbers;
  for (std::size_t i = 0, at = 0; i < count; ++i) {
    const std::size_t in_block = i % facts.block;
    if (in_block == 0 && i != 0) at += facts.header_size + facts.block * facts.bits / 8;
    int exponent = 0;
    double significand = 1;
    if (facts.header_size != 0) {
      exponent = static_cast<std::int16_t>(bytes[at] | bytes[at + 1] << 8);
      if (!is_float(codec)) significand += std::ldexp(bytes[at + 2] | bytes[at + 3] << 8, -16);
    }
    const std::uint8_t* payload = bytes.data() + at + facts.header_size;
    double value;
    if (is_float(codec)) {
      unsigned code = payload[in_block * facts.bits / 8];
      if (facts.bits == 16) code |= static_cast<unsigned>(payload[2 * in_block + 1]) << 8;
      value = grid_of(codec).value(code);
    } else if (exponent == 32767) {
      value = kNan;
    } else if (codec == Codec::int8) {
      value = static_cast<std::int8_t>(payload[in_block]) * significand;
    } else {
      const int nibble = payload[in_block / 2] >> (in_block % 2 * 4) & 0xF;
      value = (nibble < 8 ? nibble : nibble - 16) * significand;
    }
    const double scaled = std::ldexp(value, exponent);
    const bool overflows = std::isinf(scaled) && !std::isinf(value);
    numbers.push_back(rounded_to(type, overflows ? std::copysign(std::numeric_limits<double>::max(), value) : scaled));
  }
  return numbers;
}

}  // namespace seto::reference

namespace seto {
namespace {

using reference::Bytes;

// Computed by hand, to check the reference itself.
TEST(CodecReference, known_bytes) {
  const float numbers[] = {1.0F, -0.5F, 0.0F, 3.0F};
  // 3 is scaled to 1.5 x 2^15.
  EXPECT_EQ(reference::encoded(Codec::fp16, DataType::float32, numbers, 4),
            (Bytes{0xF2, 0xFF, 0, 0, 0x00, 0x74, 0x00, 0xF0, 0x00, 0x00, 0x00, 0x7A}));
  EXPECT_EQ(reference::encoded(Codec::bf16, DataType::float32, numbers, 4), (Bytes{0x80, 0x3F, 0x00, 0xBF, 0, 0, 0x40, 0x40}));
  // 3 is scaled to 1.5 x 2^8.
  EXPECT_EQ(reference::encoded(Codec::e4m3, DataType::float32, numbers, 4), (Bytes{0xF9, 0xFF, 0, 0, 0x70, 0xE8, 0x00, 0x7C}));
  // 3 / 127 = 0x1.8306...p-6, rounded up to 0x1.8307p-6. 3 / 7 = 0x1.B6DB6D...p-2, rounded up to 0x1.B6DCp-2; 1, -0.5 and 3 are
  // 2.33, -1.17 and 7 times that scale.
  EXPECT_EQ(reference::encoded(Codec::int4, DataType::float32, numbers, 4), (Bytes{0xFE, 0xFF, 0xDC, 0xB6, 0xF2, 0x70}));
  EXPECT_EQ(reference::encoded(Codec::int8, DataType::float32, numbers, 4),
            (Bytes{0xFA, 0xFF, 0x07, 0x83, 0x2A, 0xEB, 0x00, 0x7F}));
}

TEST(CodecReference, known_numbers) {
  EXPECT_EQ(reference::decoded(Codec::e5m2, DataType::float32, {0x02, 0x00, 0, 0, 0x3C, 0xC1, 0x7C, 0x01}, 4),
            (std::vector<double>{4, -10, static_cast<double>(INFINITY), std::ldexp(1, -14)}));
  EXPECT_EQ(reference::decoded(Codec::int8, DataType::float64, {0x01, 0x00, 0x00, 0x80, 0x05, 0xFF}, 2),
            (std::vector<double>{15, -3}));
}

}  // namespace
}  // namespace seto
