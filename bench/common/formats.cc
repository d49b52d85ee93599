#include "bench/common/formats.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace seto::bench {
namespace {

constexpr FloatFormat kFloat16{11, -14, 15};
constexpr FloatFormat kFloat32{24, -126, 127};
constexpr FloatFormat kFloat64{53, -1022, 1023};
constexpr FloatFormat kBfloat16{8, -126, 127};
constexpr FloatFormat kFloat8e4m3{4, -6, 8};  // the variant without infinities: largest 448, NaN all ones
constexpr FloatFormat kFloat8e5m2{3, -14, 15};

int bits_of(setoDataType_t type) { return type == setoFloat16 || type == setoBfloat16 ? 16 : 8; }

std::uint64_t largest_finite(setoDataType_t type, const FloatFormat& format) {
  if (type == setoFloat8e4m3) return 0x7e;
  const std::uint64_t infinity = ((std::uint64_t{1} << (bits_of(type) - format.precision)) - 1) << (format.precision - 1);
  return infinity - 1;
}

}  // namespace

bool is_float(setoDataType_t type) { return type >= setoFloat16; }

const FloatFormat& format_of(setoDataType_t type) {
  switch (type) {
    case setoFloat16:
      return kFloat16;
    case setoFloat64:
      return kFloat64;
    case setoBfloat16:
      return kBfloat16;
    case setoFloat8e4m3:
      return kFloat8e4m3;
    case setoFloat8e5m2:
      return kFloat8e5m2;
    default:
      return kFloat32;
  }
}

std::uint64_t encode_float(setoDataType_t type, double value) {
  if (type == setoFloat64) return std::bit_cast<std::uint64_t>(value);
  if (type == setoFloat32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  const FloatFormat& format = format_of(type);
  const int fraction_bits = format.precision - 1;
  const std::uint64_t sign = std::signbit(value) ? std::uint64_t{1} << (bits_of(type) - 1) : 0;
  const std::uint64_t largest = largest_finite(type, format);
  if (std::isnan(value)) return sign | (type == setoFloat8e4m3 ? 0x7f : largest + 2);
  if (std::isinf(value)) return sign | (largest + 1);
  if (value == 0) return sign;
  // The spacing of the format around the value; below the normal range it stays that of the smallest normal.
  const int exponent = std::max(std::ilogb(value), format.min_exponent);
  const auto units = static_cast<std::uint64_t>(std::nearbyint(std::ldexp(std::fabs(value), fraction_bits - exponent)));
  // The addition lets a significand that rounds up to two carry into the exponent. A subnormal significand, which lacks the
  // hidden bit, gets exponent field 0.
  const std::uint64_t bits = (static_cast<std::uint64_t>(exponent - format.min_exponent) << fraction_bits) + units;
  return sign | std::min(bits, largest + 1);
}

double decode_float(setoDataType_t type, std::uint64_t bits) {
  if (type == setoFloat64) return std::bit_cast<double>(bits);
  if (type == setoFloat32) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  const FloatFormat& format = format_of(type);
  const int fraction_bits = format.precision - 1;
  const std::uint64_t sign_bit = std::uint64_t{1} << (bits_of(type) - 1);
  const std::uint64_t magnitude = bits & (sign_bit - 1);
  const double sign = (bits & sign_bit) != 0 ? -1.0 : 1.0;
  const std::uint64_t largest = largest_finite(type, format);
  if (magnitude > largest) {
    const bool infinite = type != setoFloat8e4m3 && magnitude == largest + 1;
    return infinite ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  const auto field = static_cast<int>(magnitude >> fraction_bits);
  const std::uint64_t fraction = magnitude & ((std::uint64_t{1} << fraction_bits) - 1);
  const std::uint64_t hidden = field == 0 ? 0 : std::uint64_t{1} << fraction_bits;
  const int exponent = std::max(field, 1) - 1 + format.min_exponent;
  return sign * std::ldexp(static_cast<double>(hidden + fraction), exponent - fraction_bits);
}

}  // namespace seto::bench
