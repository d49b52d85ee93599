#include "tests/unit/device/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>

namespace seto::reference {
namespace {

struct Format {
  int exponent_bits;
  int fraction_bits;
  bool has_infinity;
};

Format format_of(DataType type) {
  if (type == DataType::float16) return {5, 10, true};
  if (type == DataType::bfloat16) return {8, 7, true};
  if (type == DataType::float8e4m3) return {4, 3, false};
  return {5, 2, true};
}

// Every finite value from zero up; the index is the code.
const std::vector<double>& finite_values(DataType type) {
  static std::map<DataType, std::vector<double>> tables;
  auto& table = tables[type];
  if (!table.empty()) return table;
  const Format format = format_of(type);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int codes = 1 << (format.exponent_bits + format.fraction_bits);
  const int finite = format.has_infinity ? codes - (1 << format.fraction_bits) : codes - 1;
  for (int code = 0; code < finite; ++code) {
    const int exponent = code >> format.fraction_bits;
    const double fraction = std::ldexp(code & ((1 << format.fraction_bits) - 1), -format.fraction_bits);
    table.push_back(exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias));
  }
  return table;
}

template <class T>
T extreme(ReduceOp op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
    if (a == 0 && b == 0) return std::signbit(a) == (op == ReduceOp::min) ? a : b;
  }
  return op == ReduceOp::max ? std::max(a, b) : std::min(a, b);
}

template <class T>
T combine(ReduceOp op, T a, T b) {
  if (op == ReduceOp::max || op == ReduceOp::min) return extreme(op, a, b);
  if constexpr (std::is_floating_point_v<T>) {
    return op == ReduceOp::prod ? a * b : a + b;
  } else {
    const auto wide_a = static_cast<std::uint64_t>(a);
    const auto wide_b = static_cast<std::uint64_t>(b);
    if (op == ReduceOp::bit_and) return static_cast<T>(wide_a & wide_b);
    if (op == ReduceOp::bit_or) return static_cast<T>(wide_a | wide_b);
    if (op == ReduceOp::bit_xor) return static_cast<T>(wide_a ^ wide_b);
    return static_cast<T>(op == ReduceOp::prod ? wide_a * wide_b : wide_a + wide_b);
  }
}

template <class T>
T read(const Bytes& bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void write(Bytes& bytes, std::size_t i, T value) {
  std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
}

template <class T>
T one_nan(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return std::isnan(value) ? std::bit_cast<float>(0x7FC00000u) : value;
  } else if constexpr (std::is_same_v<T, double>) {
    return std::isnan(value) ? std::bit_cast<double>(std::uint64_t{0x7FF8000000000000}) : value;
  } else {
    return value;
  }
}

template <class T>
void reduce_itself(const Fold& fold, const std::vector<Bytes>& sources, std::size_t count, Bytes& result) {
  for (std::size_t i = 0; i < count; ++i) {
    T folded{};
    for (std::size_t k = 0; k < sources.size(); ++k) {
      T value = read<T>(sources[k], i);
      if ((fold.scaled_sources >> k) & 1) value = combine(ReduceOp::prod, value, static_cast<T>(fold.scalar));
      folded = k == 0 ? value : combine(fold.op, folded, value);
    }
    if constexpr (std::is_integral_v<T>) {
      if (fold.divisor > 1) {
        using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
        folded = static_cast<T>(static_cast<Wide>(folded) / static_cast<Wide>(fold.divisor));
      }
    }
    write(result, i, one_nan(folded));
  }
}

template <class S>
void reduce_narrow(const Fold& fold, const std::vector<Bytes>& sources, std::size_t count, Bytes& result) {
  for (std::size_t i = 0; i < count; ++i) {
    float folded = 0;
    for (std::size_t k = 0; k < sources.size(); ++k) {
      float value = widened(fold.type, read<S>(sources[k], i));
      if ((fold.scaled_sources >> k) & 1) {
        value = widened(fold.type, narrowed(fold.type, value * static_cast<float>(fold.scalar)));
      }
      folded = k == 0 ? value : combine(fold.op, folded, value);
    }
    write(result, i, static_cast<S>(narrowed(fold.type, folded)));
  }
}

template <class Function>
auto with_type(DataType type, Function function) {
  switch (type) {
    case DataType::int8:
      return function(std::int8_t{});
    case DataType::uint8:
      return function(std::uint8_t{});
    case DataType::int32:
      return function(std::int32_t{});
    case DataType::uint32:
      return function(std::uint32_t{});
    case DataType::int64:
      return function(std::int64_t{});
    case DataType::uint64:
      return function(std::uint64_t{});
    case DataType::float64:
      return function(double{});
    default:
      return function(float{});
  }
}

}  // namespace

float widened(DataType type, std::uint32_t bits) {
  const Format format = format_of(type);
  const std::uint32_t sign = 1u << (format.exponent_bits + format.fraction_bits);
  const std::uint32_t magnitude = bits & (sign - 1);
  const auto& table = finite_values(type);
  float value = 0;
  if (magnitude < table.size()) {
    value = static_cast<float>(table[magnitude]);
  } else if (format.has_infinity && magnitude == table.size()) {
    value = std::numeric_limits<float>::infinity();
  } else {
    value = std::numeric_limits<float>::quiet_NaN();
  }
  return (bits & sign) != 0 ? -value : value;
}

std::uint32_t narrowed(DataType type, float value) {
  const Format format = format_of(type);
  const std::uint32_t sign = 1u << (format.exponent_bits + format.fraction_bits);
  const auto& table = finite_values(type);
  const auto infinity = static_cast<std::uint32_t>(table.size());
  if (std::isnan(value)) return format.has_infinity ? infinity | (1u << (format.fraction_bits - 1)) : sign - 1;
  const std::uint32_t signed_part = std::signbit(value) ? sign : 0;
  const double magnitude = std::fabs(static_cast<double>(value));
  const double last_step = table.back() - table[table.size() - 2];
  if (magnitude >= table.back() + last_step / 2) return signed_part | (format.has_infinity ? infinity : infinity - 1);
  if (magnitude >= table.back()) return signed_part | (infinity - 1);
  const auto above = static_cast<std::uint32_t>(std::upper_bound(table.begin(), table.end(), magnitude) - table.begin());
  const std::uint32_t below = above - 1;
  const double to_below = magnitude - table[below];
  const double to_above = table[above] - magnitude;
  const bool takes_below = to_below < to_above || (to_below == to_above && below % 2 == 0);
  return signed_part | (takes_below ? below : above);
}

Bytes reduce(const Fold& fold, const std::vector<Bytes>& sources, std::size_t count) {
  Bytes result(count * size_of(fold.type));
  if (sources.size() == 1 && fold.scaled_sources == 0 && fold.divisor <= 1) {
    std::copy_n(sources[0].begin(), result.size(), result.begin());
  } else if (is_integer(fold.type) || accumulates_in_itself(fold.type)) {
    with_type(fold.type, [&](auto zero) { reduce_itself<decltype(zero)>(fold, sources, count, result); });
  } else if (size_of(fold.type) == 2) {
    reduce_narrow<std::uint16_t>(fold, sources, count, result);
  } else {
    reduce_narrow<std::uint8_t>(fold, sources, count, result);
  }
  return result;
}

Bytes scalar_bytes(const Fold& fold) {
  return with_type(fold.type, [&](auto zero) {
    Bytes bytes(sizeof(zero));
    write(bytes, 0, static_cast<decltype(zero)>(fold.scalar));
    return bytes;
  });
}

std::string difference(DataType type, const Bytes& expected, const std::uint8_t* actual, std::size_t count) {
  const std::size_t size = size_of(type);
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(expected.data() + i * size, actual + i * size, size) == 0) continue;
    std::uint64_t wanted = 0;
    std::uint64_t got = 0;
    std::memcpy(&wanted, expected.data() + i * size, size);
    std::memcpy(&got, actual + i * size, size);
    char text[128];
    std::snprintf(text, sizeof text, "element %zu of %zu: expected %#llx, got %#llx", i, count,
                  static_cast<unsigned long long>(wanted), static_cast<unsigned long long>(got));
    return text;
  }
  return {};
}

// The reference itself, at values known from the definitions of the formats.
TEST(Reference, rounds_known_values) {
  EXPECT_EQ(narrowed(DataType::float16, 65504.0f), 0x7BFFu);
  EXPECT_EQ(narrowed(DataType::float16, 65519.996f), 0x7BFFu);
  EXPECT_EQ(narrowed(DataType::float16, 65520.0f), 0x7C00u);
  EXPECT_EQ(narrowed(DataType::float16, std::ldexp(1.0f, -25)), 0u);
  EXPECT_EQ(narrowed(DataType::float16, std::ldexp(1.5f, -25)), 1u);
  EXPECT_EQ(narrowed(DataType::bfloat16, -1.0f), 0xBF80u);
  EXPECT_EQ(narrowed(DataType::float8e4m3, 464.0f), 0x7Eu);
  EXPECT_EQ(narrowed(DataType::float8e4m3, 1e9f), 0x7Eu);
  EXPECT_EQ(narrowed(DataType::float8e5m2, 61440.0f), 0x7Cu);
  EXPECT_EQ(narrowed(DataType::float8e5m2, 61439.0f), 0x7Bu);
  EXPECT_EQ(widened(DataType::float8e4m3, 0x7Eu), 448.0f);
  EXPECT_EQ(widened(DataType::float8e5m2, 0x7Bu), 57344.0f);
  EXPECT_TRUE(std::isnan(widened(DataType::float8e4m3, 0xFFu)));
}

}  // namespace seto::reference
