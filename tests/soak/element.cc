#include "tests/soak/element.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "tests/soak/random.h"

namespace seto::soak {
namespace {

constexpr std::int64_t kExactInHalf = 2048;
constexpr std::array<Type, kTypes + 2> kTable = {{
    {setoInt8, 1, false, true, 127},
    {setoUint8, 1, false, false, 255},
    {setoInt32, 4, false, true, 1 << 20},
    {setoUint32, 4, false, false, 1 << 20},
    {setoInt64, 8, false, true, std::int64_t{1} << 40},
    {setoUint64, 8, false, false, std::int64_t{1} << 40},
    {setoFloat16, 2, true, true, 2048},
    {setoFloat32, 4, true, true, 1 << 24},
    {setoFloat64, 8, true, true, std::int64_t{1} << 40},
    {setoBfloat16, 2, true, true, 256},
    {setoFloat8e4m3, 1, true, true, 16},
    {setoFloat8e5m2, 1, true, true, 8},
    {setoFloat32, 4, true, true, kExactInHalf},
    {setoFloat64, 8, true, true, kExactInHalf},
}};

// A number that is exact in a float of this number of exponent and fraction bits, and larger than its subnormals.
unsigned small_float(double value, int exponent_bits, int fraction_bits) {
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent) * 2 - 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto low = static_cast<unsigned>(std::ldexp(fraction, fraction_bits));
  const auto high = static_cast<unsigned>(exponent - 1 + bias) << fraction_bits;
  return (value < 0 ? 1U << (exponent_bits + fraction_bits) : 0U) | high | low;
}

template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

void store_float(setoDataType_t code, double value, std::byte* at) {
  switch (code) {
    case setoFloat16:
      return put(at, static_cast<std::uint16_t>(small_float(value, 5, 10)));
    case setoBfloat16:
      return put(at, static_cast<std::uint16_t>(small_float(value, 8, 7)));
    case setoFloat8e4m3:
      return put(at, static_cast<std::uint8_t>(small_float(value, 4, 3)));
    case setoFloat8e5m2:
      return put(at, static_cast<std::uint8_t>(small_float(value, 5, 2)));
    case setoFloat32:
      return put(at, static_cast<float>(value));
    default:
      return put(at, value);
  }
}

// A cheap hash, because it is evaluated for every element of every rank.
std::uint64_t scattered(std::uint64_t value) {
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93U;
  return value ^ value >> 32;
}

}  // namespace

const Type& type_of(int index) { return kTable[static_cast<std::size_t>(index)]; }

int within_fp16(int index) {
  const setoDataType_t code = type_of(index).code;
  return code == setoFloat32 ? kTypes : code == setoFloat64 ? kTypes + 1 : index;
}

void store(const Type& type, Word value, int divisor, std::byte* at) {
  const auto with_sign = static_cast<std::int64_t>(value);
  if (type.floating) return store_float(type.code, static_cast<double>(with_sign) / divisor, at);
  if (divisor != 1) value = type.has_sign ? static_cast<Word>(with_sign / divisor) : value / static_cast<Word>(divisor);
  std::memcpy(at, &value, type.size);  // both the machine's byte order and this are little-endian
}

Numbers::Numbers(const Type& type, Fold fold, int ranks, std::uint64_t key)
    : type_(type), fold_(fold), ranks_(ranks), key_(key), wide_(!type.floating && fold != Fold::average) {
  static_assert(std::endian::native == std::endian::little);
  const std::int64_t scale = fold == Fold::scaled_sum ? 2 : 1;
  most_ = type.exact / (ranks * scale);
  contributors_ = ranks;
  if (most_ == 0) {
    most_ = 1;
    contributors_ = static_cast<int>(type.exact / scale);
  }
}

Word Numbers::narrow(Word value) const {
  const int unused = 64 - 8 * static_cast<int>(type_.size);
  value <<= unused;
  return type_.has_sign ? static_cast<Word>(static_cast<std::int64_t>(value) >> unused) : value >> unused;
}

Word Numbers::of(int rank, std::size_t index) const {
  const std::uint64_t drawn = scattered(mixed(key_, static_cast<std::uint64_t>(rank)) + index * 0x9e3779b97f4a7c15U);
  if (wide_) return narrow(drawn);
  if (fold_ == Fold::product) return 1 + (drawn & 1);
  if (rank >= contributors_) return 0;
  const std::int64_t least = type_.has_sign ? -most_ : 0;
  const auto span = static_cast<std::uint64_t>(most_ - least) + 1;
  return static_cast<Word>(least + static_cast<std::int64_t>(drawn % span));
}

Word Numbers::folded(std::size_t index) const {
  Word result = of(0, index) * (fold_ == Fold::scaled_sum ? scale_of(0) : 1);
  for (int rank = 1; rank < ranks_; ++rank) {
    const Word value = of(rank, index);
    const bool greater = type_.has_sign ? static_cast<std::int64_t>(value) > static_cast<std::int64_t>(result) : value > result;
    switch (fold_) {
      case Fold::sum:
      case Fold::average:
        result += value;
        break;
      case Fold::scaled_sum:
        result += value * scale_of(rank);
        break;
      case Fold::product:
        result *= value;
        break;
      case Fold::greatest:
        if (greater) result = value;
        break;
      case Fold::least:
        if (!greater) result = value;
        break;
    }
  }
  return result;
}

void Numbers::store_own(int rank, std::size_t from, std::span<std::byte> target) const {
  for (std::size_t at = 0; at < target.size(); at += type_.size) store(type_, of(rank, from++), 1, &target[at]);
}

void Numbers::store_folded(std::size_t from, std::span<std::byte> target) const {
  const int divisor = fold_ == Fold::average ? ranks_ : 1;
  for (std::size_t at = 0; at < target.size(); at += type_.size) store(type_, folded(from++), divisor, &target[at]);
}

}  // namespace seto::soak
