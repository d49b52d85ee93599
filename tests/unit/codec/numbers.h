#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "src/base/types.h"
#include "tests/unit/codec/reference.h"

namespace seto::codec_test {

// A tensor as bytes of its type.
struct Numbers {
  DataType type;
  std::size_t count;
  std::vector<std::uint8_t> bytes;

  Numbers(DataType of_type, std::size_t of_count) : type(of_type), count(of_count), bytes(of_count * size_of(of_type)) {}
  double operator[](std::size_t i) const { return reference::number_at(type, bytes.data(), i); }
  void set(std::size_t i, double value) { reference::set_number(type, bytes.data(), i, value); }
  void* data() { return bytes.data(); }
  const void* data() const { return bytes.data(); }
};

struct Range {
  int lowest;  // exponent of the smallest denormal
  int highest;
  double largest;
};

inline Range range_of(DataType type) {
  if (type == DataType::float64) return {-1074, 1023, std::numeric_limits<double>::max()};
  if (type == DataType::float32) return {-149, 127, static_cast<double>(std::numeric_limits<float>::max())};
  return {-133, 127, std::ldexp(255.0, 120)};
}

// Blocks that are hard to encode: any exponent, one exponent, denormals, all equal, alternating, the largest, ties, many values
// near zero.
enum class Kind : std::uint8_t { gradient, any_exponent, huge_range, denormal, tiny, equal, alternating, largest, ties, sparse };
inline constexpr int kKinds = 10;

inline double value_of(Kind kind, std::size_t i, const Range& range, int exponent, std::mt19937_64& random) {
  const double uniform = std::uniform_real_distribution<double>(1, 2)(random);
  const double sign = random() % 2 == 0 ? -1 : 1;
  const auto between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  switch (kind) {
    case Kind::gradient:
      return std::normal_distribution<double>(0, std::ldexp(1, std::clamp(exponent, -60, 60)))(random);
    case Kind::any_exponent:
      return sign * std::ldexp(uniform, between(range.lowest, range.highest));
    case Kind::huge_range:
      return sign * std::ldexp(uniform, exponent - between(0, 60));
    case Kind::denormal:
      return sign * std::ldexp(uniform, range.lowest + between(-1, 24));
    case Kind::tiny:
      return sign * std::ldexp(uniform, range.lowest + 20 + between(0, 30));
    case Kind::equal:
      return std::ldexp(1.7, exponent);
    case Kind::alternating:
      return (i % 2 == 0 ? 1 : -1) * std::ldexp(1.9999, exponent);
    case Kind::largest:
      return i % 3 == 0 ? sign * range.largest : sign * std::ldexp(uniform, range.highest - between(1, 20));
    case Kind::ties:
      return sign * std::ldexp(static_cast<double>(random() % 8192), exponent - 12);
    default:
      return random() % 16 != 0 ? sign * 0.0 : sign * std::ldexp(uniform, exponent);
  }
}

inline Numbers numbers_of(Kind kind, DataType type, std::size_t count, std::mt19937_64& random) {
  const Range range = range_of(type);
  Numbers numbers(type, count);
  int exponent = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 64 == 0) exponent = std::uniform_int_distribution<int>(range.lowest, range.highest)(random);
    double value = value_of(kind, i, range, exponent, random);
    value = std::clamp(value, -range.largest, range.largest);
    numbers.set(i, value);
  }
  return numbers;
}

inline void sprinkle_specials(Numbers& numbers, std::mt19937_64& random) {
  const std::array<double, 3> specials = {INFINITY, -INFINITY, std::numeric_limits<double>::quiet_NaN()};
  for (std::size_t i = 0; i < numbers.count; ++i) {
    if (random() % 300 == 0) numbers.set(i, specials[random() % specials.size()]);
  }
}

}  // namespace seto::codec_test
