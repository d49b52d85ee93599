#include <algorithm>
#include <cmath>

#include "src/base/check.h"
#include "src/codec/codec.h"
#include "src/codec/format.h"

namespace seto {
namespace {

// All bounds are computed in double. For the smallest numbers of fp64 a bound may become zero, where the error is zero too.

double power(int exponent) { return std::ldexp(1.0, exponent); }

// 2^exponent <= value.
int exponent_of(double value) { return std::ilogb(value); }

// The largest distance of a code from its value, in steps of the grid. With stochastic rounding it is nearly one step, plus the
// bits that stochastic rounding does not use.
double steps(Rounding rounding, int bits_of_chance) { return rounding == Rounding::nearest ? 0.5 : 1 + power(-bits_of_chance); }

template <class F>
double scaled_float_bound(Rounding rounding, double largest, double magnitude) {
  const double most = 1 + power(-F::kFraction) * F::kLargestFraction;
  const int exponent = exponent_of(largest);
  const int top = exponent + (std::ldexp(largest, -exponent) > most ? 1 : 0);
  const int lowest = top - F::kTop + F::kLowest;
  const int grid = magnitude == 0 ? lowest : std::max(exponent_of(magnitude), lowest);
  return std::ldexp(steps(rounding, 29 - F::kFraction), grid - F::kFraction);
}

double brain_bound(Rounding rounding, double magnitude) {
  using F = BrainFloatFormat;
  const double largest = (2 - power(-F::kFraction)) * power(F::kTop);
  if (magnitude > largest) return magnitude - largest;
  const int grid = magnitude == 0 ? F::kLowest : std::max(exponent_of(magnitude), F::kLowest);
  return std::ldexp(steps(rounding, 29 - F::kFraction), grid - F::kFraction);
}

// The roundings besides that of the code: two before it in the type of the computation, and those of the result. Float formats do
// not round the result, because their numbers are exact in every type that they encode.
double integer_bound(int most, DataType type, Rounding rounding, double largest, double magnitude) {
  const double scale = largest / most * (1 + power(-16));
  const double of_code = scale * (steps(rounding, 22) + most * power(-22));
  switch (type) {
    case DataType::float64:
      return of_code + power(-1074);
    case DataType::bfloat16:
      return of_code + power(-150) + power(std::max(exponent_of(magnitude + of_code), BrainFloatFormat::kLowest) - 8);
    default:
      return of_code + power(-150);
  }
}

}  // namespace

double error_bound(Codec codec, DataType type, Rounding rounding, double largest, double magnitude) {
  if (largest == 0) return 0;
  switch (codec) {
    case Codec::fp16:
      return scaled_float_bound<HalfFormat>(rounding, largest, magnitude);
    case Codec::bf16:
      return brain_bound(rounding, magnitude);
    case Codec::e4m3:
      return scaled_float_bound<E4m3Format>(rounding, largest, magnitude);
    case Codec::e5m2:
      return scaled_float_bound<E5m2Format>(rounding, largest, magnitude);
    case Codec::int8:
      return integer_bound(IntegerFormat<8>::kMost, type, rounding, largest, magnitude);
    case Codec::int4:
      return integer_bound(IntegerFormat<4>::kMost, type, rounding, largest, magnitude);
  }
  SETO_CHECK(false);
  return 0;
}

}  // namespace seto
