#include "bench/common/verify.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "bench/common/formats.h"

namespace seto::bench {
namespace {

// The finalizer of a multiply-xorshift generator: every input bit reaches every output bit.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}
std::uint64_t element_hash(std::uint64_t seed, std::size_t index) { return mix(seed + 0x9e3779b97f4a7c15u * (index + 1)); }
std::uint64_t rank_hash(std::uint64_t hash, int rank) {
  return mix(hash ^ (0xc2b2ae3d27d4eb4fu * (static_cast<std::uint64_t>(rank) + 1)));
}

// The first positions matter where not all ranks can contribute, so ranks take turns at them.
int position_of(std::uint64_t hash, int rank, int ranks) {
  return static_cast<int>((hash % static_cast<std::uint64_t>(ranks) + static_cast<std::uint64_t>(rank)) %
                          static_cast<std::uint64_t>(ranks));
}

// This position's part of a budget. The sum of all parts never exceeds the budget, and no part is zero while the budget lasts.
std::int64_t share_of(std::uint64_t budget, int position, int ranks, std::uint64_t random) {
  if (static_cast<std::uint64_t>(position) >= budget) return 0;
  const std::uint64_t most = std::max<std::uint64_t>(1, budget / static_cast<std::uint64_t>(ranks));
  const auto amount = static_cast<std::int64_t>(1 + (random >> 1) % most);
  return (random & 1) != 0 ? -amount : amount;
}

int exponent_between(int low, int high, std::uint64_t random) {
  if (high <= low) return high;
  return low + static_cast<int>(random % static_cast<std::uint64_t>(high - low + 1));
}

double significand(const FloatFormat& format, std::uint64_t random) {
  const int bits = format.precision - 1;
  return 1.0 + std::ldexp(static_cast<double>(random & ((std::uint64_t{1} << bits) - 1)), -bits);
}

// The standard function's result type differs between libraries.
int bit_width(int value) { return static_cast<int>(std::bit_width(static_cast<unsigned>(value))); }

// Wide formats do not need their whole range. This range varies every exponent bit that matters and stays far from the limits.
constexpr int kExponentReach = 20;

constexpr double kLargestScalar = 2;
double float_scalar(int rank) { return rank % 2 == 0 ? 1.0 : kLargestScalar; }

double float_sum_input(const Pattern& pattern, const FloatFormat& format, std::uint64_t hash, int rank) {
  const int precision = pattern.op == Op::mul_sum ? format.precision - 1 : format.precision;
  const std::uint64_t budget = std::uint64_t{1} << precision;
  const std::int64_t share = share_of(budget, position_of(hash, rank, pattern.ranks), pattern.ranks, rank_hash(hash, rank));
  // An average of 2^k ranks scales by 2^-k, which must not leave the normal range.
  const int scaling = pattern.op == Op::avg ? bit_width(pattern.ranks) - 1 : 0;
  const int low = std::max(format.min_exponent + scaling, -kExponentReach);
  const int high = std::min(format.max_exponent - format.precision, kExponentReach);
  return std::ldexp(static_cast<double>(share), exponent_between(low, high, hash >> 40));
}

double float_prod_input(const Pattern& pattern, const FloatFormat& format, std::uint64_t hash, int rank) {
  const int reach = std::min(-format.min_exponent, format.max_exponent - 1);
  const int position = position_of(hash, rank, pattern.ranks);
  const std::uint64_t random = rank_hash(hash, rank);
  const std::int64_t exponent = share_of(static_cast<std::uint64_t>(reach), position, pattern.ranks, random);
  const double factor = position == 0 ? significand(format, random >> 8) : 1.0;
  return std::ldexp((random >> 62 & 1) != 0 ? -factor : factor, static_cast<int>(exponent));
}

double float_any_input(const FloatFormat& format, std::uint64_t random) {
  const int low = std::max(format.min_exponent, -kExponentReach);
  const int high = std::min(format.max_exponent - 1, kExponentReach);
  const double value = std::ldexp(significand(format, random), exponent_between(low, high, random >> 54));
  return (random >> 53 & 1) != 0 ? -value : value;
}

double float_avg_input(const Pattern& pattern, const FloatFormat& format, std::uint64_t hash, int rank) {
  // Scaling by a power of two is exact, and so is the sum then.
  if (std::has_single_bit(static_cast<unsigned>(pattern.ranks))) return float_sum_input(pattern, format, hash, rank);
  constexpr int kContributors = 2;
  if (position_of(hash, rank, pattern.ranks) >= kContributors) return 0;
  // The quotient must stay in the normal range, and the sum of two must not overflow.
  const int quotient_bits = bit_width(pattern.ranks - 1);
  const int low = std::max(format.min_exponent + 1 + quotient_bits, -kExponentReach);
  const int high = std::min(format.max_exponent - 2, kExponentReach);
  const std::uint64_t random = mix(hash);
  const double value = std::ldexp(significand(format, random), exponent_between(low, high, random >> 54));
  return (random >> 53 & 1) != 0 ? -value : value;
}

double float_input(const Pattern& pattern, const FloatFormat& format, std::uint64_t hash, int rank) {
  switch (pattern.op) {
    case Op::prod:
      return float_prod_input(pattern, format, hash, rank);
    case Op::max:
    case Op::min:
      return float_any_input(format, rank_hash(hash, rank));
    case Op::avg:
      return float_avg_input(pattern, format, hash, rank);
    default:
      return float_sum_input(pattern, format, hash, rank);
  }
}

// Exact in double: sums have at most 53 significant bits, products one significand.
double float_expected(const Pattern& pattern, const FloatFormat& format, std::uint64_t hash) {
  double result = float_input(pattern, format, hash, 0);
  for (int rank = 1; rank < pattern.ranks; ++rank) {
    const double value = float_input(pattern, format, hash, rank);
    switch (pattern.op) {
      case Op::prod:
        result *= value;
        break;
      case Op::max:
        result = std::max(result, value);
        break;
      case Op::min:
        result = std::min(result, value);
        break;
      case Op::mul_sum:
        result += value * float_scalar(rank);
        break;
      default:
        result += value;
    }
  }
  return pattern.op == Op::avg ? result / pattern.ranks : result;
}

template <class T>
T integer_scalar(int rank) {
  return static_cast<T>(1 + rank % 5);
}

// Few enough contributors that each one changes the quotient, which truncates: values are at least `ranks` where the type's range
// allows it.
template <class T>
std::int64_t integer_avg_share(int position, int ranks, std::uint64_t random) {
  constexpr auto kMost =
      static_cast<std::int64_t>(std::min<std::uint64_t>(std::numeric_limits<T>::max(), std::uint64_t{1} << 62));
  const std::int64_t contributors = std::clamp<std::int64_t>(kMost / 2 / ranks, 1, ranks);
  if (position >= contributors) return 0;
  const std::int64_t most = kMost / contributors;
  const std::int64_t amount = most - static_cast<std::int64_t>((random >> 1) % static_cast<std::uint64_t>(most / 2));
  return (random & 1) != 0 ? -amount : amount;
}

template <class T>
T integer_input(const Pattern& pattern, std::uint64_t hash, int rank) {
  const std::uint64_t random = rank_hash(hash, rank);
  if (pattern.op == Op::prod) return static_cast<T>(random | 1);
  if (pattern.op != Op::avg) return static_cast<T>(random);
  const std::int64_t share = integer_avg_share<T>(position_of(hash, rank, pattern.ranks), pattern.ranks, random);
  return static_cast<T>(std::is_signed_v<T> ? share : std::abs(share));
}

template <class T>
T integer_expected(const Pattern& pattern, std::uint64_t hash) {
  // Unsigned and 64 bits wide: wraps as two's complement does, without the promotion of small types to int.
  const T first = integer_input<T>(pattern, hash, 0);
  auto wrapped = static_cast<std::uint64_t>(first);
  T extreme = first;
  for (int rank = 1; rank < pattern.ranks; ++rank) {
    const T value = integer_input<T>(pattern, hash, rank);
    if (pattern.op == Op::max) extreme = std::max(extreme, value);
    if (pattern.op == Op::min) extreme = std::min(extreme, value);
    if (pattern.op == Op::prod) wrapped *= static_cast<std::uint64_t>(value);
    if (pattern.op == Op::sum || pattern.op == Op::avg) wrapped += static_cast<std::uint64_t>(value);
    if (pattern.op == Op::mul_sum) wrapped += static_cast<std::uint64_t>(value) * integer_scalar<std::uint64_t>(rank);
  }
  if (pattern.op == Op::max || pattern.op == Op::min) return extreme;
  const T sum = static_cast<T>(wrapped);
  return pattern.op == Op::avg ? static_cast<T>(static_cast<std::int64_t>(sum) / pattern.ranks) : sum;
}

template <class Value>
void store(std::span<std::byte> target, std::size_t index, Value value) {
  std::memcpy(target.data() + index * sizeof(Value), &value, sizeof(Value));
}

void store_bits(std::span<std::byte> target, std::size_t index, std::size_t size, std::uint64_t bits) {
  std::memcpy(target.data() + index * size, &bits, size);
}

// Stands for a rank and means the reduction over all ranks.
constexpr int kExpected = -1;

template <class T>
void fill_integers(const Pattern& pattern, int rank, std::size_t first, std::span<std::byte> target) {
  for (std::size_t i = 0; i < target.size() / sizeof(T); ++i) {
    const std::uint64_t hash = element_hash(pattern.seed, first + i);
    store(target, i, rank == kExpected ? integer_expected<T>(pattern, hash) : integer_input<T>(pattern, hash, rank));
  }
}

void fill_floats(const Pattern& pattern, int rank, std::size_t first, std::span<std::byte> target) {
  const FloatFormat& format = format_of(pattern.type);
  const std::size_t size = size_of(pattern.type);
  for (std::size_t i = 0; i < target.size() / size; ++i) {
    const std::uint64_t hash = element_hash(pattern.seed, first + i);
    const double value = rank == kExpected ? float_expected(pattern, format, hash) : float_input(pattern, format, hash, rank);
    store_bits(target, i, size, encode_float(pattern.type, value));
  }
}

void fill(const Pattern& pattern, int rank, std::size_t first, std::span<std::byte> target) {
  switch (pattern.type) {
    case setoInt8:
      return fill_integers<std::int8_t>(pattern, rank, first, target);
    case setoUint8:
      return fill_integers<std::uint8_t>(pattern, rank, first, target);
    case setoInt32:
      return fill_integers<std::int32_t>(pattern, rank, first, target);
    case setoUint32:
      return fill_integers<std::uint32_t>(pattern, rank, first, target);
    case setoInt64:
      return fill_integers<std::int64_t>(pattern, rank, first, target);
    case setoUint64:
      return fill_integers<std::uint64_t>(pattern, rank, first, target);
    default:
      return fill_floats(pattern, rank, first, target);
  }
}

std::uint64_t load_bits(std::span<const std::byte> source, std::size_t index, std::size_t size) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, source.data() + index * size, size);
  return bits;
}

// Maps sign and magnitude to a number line on which adjacent values differ by one and both zeros are 0.
std::int64_t number_line(std::uint64_t bits, std::size_t size) {
  const std::uint64_t sign = std::uint64_t{1} << (size * 8 - 1);
  const auto magnitude = static_cast<std::int64_t>(bits & (sign - 1));
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

}  // namespace

void fill_reduce_input(const Pattern& pattern, int rank, std::size_t first, std::span<std::byte> target) {
  fill(pattern, rank, first, target);
}

void fill_reduce_expected(const Pattern& pattern, std::size_t first, std::span<std::byte> target) {
  fill(pattern, kExpected, first, target);
}

void fill_moved_input(std::uint64_t seed, int rank, std::size_t element_size, std::size_t first, std::span<std::byte> target) {
  for (std::size_t i = 0; i < target.size() / element_size; ++i) {
    store_bits(target, i, element_size, rank_hash(element_hash(seed, first + i), rank));
  }
}

double largest_scalar() { return kLargestScalar; }

void write_scalar(const Pattern& pattern, int rank, void* target) {
  const std::size_t size = size_of(pattern.type);
  const std::uint64_t bits =
      is_float(pattern.type) ? encode_float(pattern.type, float_scalar(rank)) : integer_scalar<std::uint64_t>(rank);
  std::memcpy(target, &bits, size);
}

namespace {

double float_at(setoDataType_t type, const std::byte* at) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, size_of(type));
  return decode_float(type, bits);
}

}  // namespace

std::uint64_t count_beyond(setoDataType_t type, double bound, std::span<const std::byte> expected,
                           std::span<const std::byte> actual) {
  std::uint64_t wrong = 0;
  for (std::size_t at = 0; at < expected.size(); at += size_of(type)) {
    const double off = std::abs(float_at(type, &expected[at]) - float_at(type, &actual[at]));
    wrong += off <= bound ? 0 : 1;  // NaN is beyond every bound
  }
  return wrong;
}

double largest_magnitude(setoDataType_t type, std::span<const std::byte> values) {
  double largest = 0;
  for (std::size_t at = 0; at < values.size(); at += size_of(type))
    largest = std::max(largest, std::abs(float_at(type, &values[at])));
  return largest;
}

std::uint64_t count_differing(std::size_t element_size, std::span<const std::byte> expected, std::span<const std::byte> actual) {
  if (std::memcmp(expected.data(), actual.data(), expected.size()) == 0) return 0;
  std::uint64_t wrong = 0;
  for (std::size_t at = 0; at < expected.size(); at += element_size) {
    wrong += std::memcmp(expected.data() + at, actual.data() + at, element_size) != 0 ? 1 : 0;
  }
  return wrong;
}

std::uint64_t count_wrong(const Pattern& pattern, std::span<const std::byte> expected, std::span<const std::byte> actual) {
  const std::size_t size = size_of(pattern.type);
  if (pattern.op != Op::avg || !is_float(pattern.type)) return count_differing(size, expected, actual);
  constexpr std::uint64_t kUlps = 2;
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < expected.size() / size; ++i) {
    const std::uint64_t bits = load_bits(actual, i, size);
    const std::int64_t want = number_line(load_bits(expected, i, size), size);
    const std::int64_t have = number_line(bits, size);
    const std::uint64_t distance = have > want ? static_cast<std::uint64_t>(have) - static_cast<std::uint64_t>(want)
                                               : static_cast<std::uint64_t>(want) - static_cast<std::uint64_t>(have);
    wrong += distance > kUlps || !std::isfinite(decode_float(pattern.type, bits)) ? 1 : 0;
  }
  return wrong;
}

}  // namespace seto::bench
