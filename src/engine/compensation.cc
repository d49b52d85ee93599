#include "src/engine/compensation.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace seto {
namespace {

struct Bfloat {
  std::uint16_t bits;
};

float widened(Bfloat value) { return std::bit_cast<float>(std::uint32_t{value.bits} << 16); }
float widened(float value) { return value; }
double widened(double value) { return value; }

// False of NaN, too. No branch: the loops below run on vectors.
template <class Wide>
bool is_finite(Wide value) {
  return std::abs(value) <= std::numeric_limits<Wide>::max();
}

}  // namespace

Compensation::Compensation(Codec codec, DataType type, std::size_t most)
    : type_(type),
      encode_(encode_function(codec, residual_type(type), Rounding::nearest)),
      decode_(decode_function(codec, type)),
      most_(most) {}

void Compensation::prepare() {
  if (!sent_.empty()) return;
  owed_.resize(most_ * size_of(residual_type(type_)));
  sent_.resize(most_ * size_of(type_));
}

void Compensation::encode(const void* values, void* encoded, std::size_t count, void* residual) {
  prepare();
  if (type_ == DataType::float64) return encode_as<double, double>(values, encoded, count, residual);
  if (type_ == DataType::bfloat16) return encode_as<float, Bfloat>(values, encoded, count, residual);
  encode_as<float, float>(values, encoded, count, residual);
}

template <class Wide, class Narrow>
void Compensation::encode_as(const void* values, void* encoded, std::size_t count, void* residual) {
  const auto* const value = static_cast<const Narrow*>(values);
  auto* const rest = static_cast<Wide*>(residual);
  auto* const owed = reinterpret_cast<Wide*>(owed_.data());
  const auto* const sent = reinterpret_cast<const Narrow*>(sent_.data());
  for (std::size_t i = 0; i < count; ++i) {
    const Wide own = widened(value[i]);
    const Wide all = own + rest[i];
    owed[i] = is_finite(all) ? all : own;
  }
  encode_({owed, encoded, count, Store::cached, 0, 0});
  decode_({encoded, nullptr, sent_.data(), count, Store::cached});
  for (std::size_t i = 0; i < count; ++i) {
    const Wide left = owed[i] - widened(sent[i]);
    const bool counts = is_finite(left) && is_finite(widened(value[i]) + rest[i]);
    rest[i] = counts ? left : rest[i];
  }
}

}  // namespace seto
