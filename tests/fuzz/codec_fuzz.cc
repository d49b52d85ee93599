#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "src/codec/codec.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

struct Case {
  seto::Codec codec;
  seto::DataType type;
  seto::Rounding rounding;
  std::size_t count;
};

Case case_of(const std::uint8_t* data) {
  constexpr seto::DataType kTypes[] = {seto::DataType::float32, seto::DataType::float64, seto::DataType::bfloat16};
  const auto codec = static_cast<seto::Codec>(data[0] % seto::kCodecCount);
  seto::DataType type = kTypes[data[1] % 3];
  if (!seto::encodes(codec, type)) type = seto::DataType::float32;
  const auto rounding = data[2] % 2 == 0 ? seto::Rounding::nearest : seto::Rounding::stochastic;
  return {codec, type, rounding, static_cast<std::size_t>(data[3] | data[4] << 8) % 2000};
}

// A buffer of exactly this size, filled with the repeated input, so that a sanitizer detects a read beyond it.
std::vector<std::uint8_t> filled(std::size_t size, const std::uint8_t* data, std::size_t of_data) {
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t i = 0; i < size && of_data != 0; ++i) bytes[i] = data[i % of_data];
  return bytes;
}

double number(seto::DataType type, const std::uint8_t* bytes) {
  if (type == seto::DataType::float64) {
    double value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  std::uint32_t bits = 0;
  float value;
  std::memcpy(&bits, bytes, seto::size_of(type));
  if (type == seto::DataType::bfloat16) bits <<= 16;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Takes any bytes as numbers: those that are not finite stay so, the others keep to the bound.
void of_numbers(const Case& c, const std::vector<std::uint8_t>& numbers) {
  std::vector<std::uint8_t> encoded(seto::encoded_size(c.codec, c.count));
  std::vector<std::uint8_t> back(numbers.size());
  seto::encode_function(c.codec, c.type, c.rounding)({numbers.data(), encoded.data(), c.count, seto::Store::cached, 7, 0});
  seto::decode_function(c.codec, c.type)({encoded.data(), nullptr, back.data(), c.count, seto::Store::past_cache});
  const std::size_t block = seto::facts_of(c.codec).block;
  const std::size_t size = seto::size_of(c.type);
  for (std::size_t start = 0; start < c.count; start += block) {
    const std::size_t end = std::min(c.count, start + block);
    double largest = 0;
    bool finite = true;
    for (std::size_t i = start; i < end; ++i) {
      const double magnitude = std::abs(number(c.type, &numbers[i * size]));
      finite = finite && std::isfinite(magnitude);
      if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
    }
    const bool lost = !finite && (c.codec == seto::Codec::int8 || c.codec == seto::Codec::int4);
    for (std::size_t i = start; i < end; ++i) {
      const double before = number(c.type, &numbers[i * size]);
      const double after = number(c.type, &back[i * size]);
      check(std::isfinite(after) == (std::isfinite(before) && !lost));
      if (std::isfinite(after))
        check(std::abs(after - before) <= seto::error_bound(c.codec, c.type, c.rounding, largest, std::abs(before)));
    }
  }
}

}  // namespace

// Uses the same bytes once as encoded data and once as numbers. Sanitizers detect accesses outside.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 5) return 0;
  const Case c = case_of(data);
  const std::vector<std::uint8_t> numbers = filled(c.count * seto::size_of(c.type), data + 5, size - 5);
  const std::vector<std::uint8_t> encoded = filled(seto::encoded_size(c.codec, c.count), data + 5, size - 5);
  std::vector<std::uint8_t> target(numbers.size());
  seto::decode_function(c.codec, c.type)({encoded.data(), nullptr, target.data(), c.count, seto::Store::cached});
  seto::accumulate_function(c.codec, c.type)({encoded.data(), numbers.data(), target.data(), c.count, seto::Store::past_cache});
  of_numbers(c, numbers);
  return 0;
}
