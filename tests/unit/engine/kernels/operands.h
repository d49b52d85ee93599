#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "src/base/types.h"
#include "src/device/reduce.h"
#include "src/engine/kernels/pass.h"

namespace seto {

using Random = std::mt19937_64;

inline std::size_t below(Random& random, std::size_t limit) { return static_cast<std::size_t>(random() % limit); }

inline bool one_in(Random& random, std::size_t of) { return below(random, of) == 0; }

// Bits of a number of `type`: any, or those of which kernels must be careful.
inline std::uint64_t random_number(DataType type, Random& random) {
  const std::uint64_t any = random();
  const std::size_t width = 8 * size_of(type);
  const std::uint64_t sign = any & std::uint64_t{1} << (width - 1);
  int exponent_bits = 0;
  switch (type) {
    case DataType::float16:
    case DataType::float8e5m2:
      exponent_bits = 5;
      break;
    case DataType::float8e4m3:
      exponent_bits = 4;
      break;
    case DataType::float32:
    case DataType::bfloat16:
      exponent_bits = 8;
      break;
    case DataType::float64:
      exponent_bits = 11;
      break;
    default:
      return one_in(random, 4) ? any % 5 - 2 : any;
  }
  const std::size_t fraction_bits = width - 1 - static_cast<std::size_t>(exponent_bits);
  const std::uint64_t fraction = any & ((std::uint64_t{1} << fraction_bits) - 1);
  const std::uint64_t exponents = (std::uint64_t{1} << exponent_bits) - 1;
  switch (below(random, 12)) {
    case 0:
      return sign;
    case 1:
      return sign | fraction;  // a denormal
    case 2:
      return sign | exponents << fraction_bits;  // an infinity, if there is one
    case 3:
      return sign | exponents << fraction_bits | fraction;  // a NaN
    case 4:
      return sign | ((exponents << fraction_bits) - 1);  // large
    case 5:
      return any;
    default:  // near one
      return sign | fraction | (exponents / 2 - 2 + any / 7 % 5) << fraction_bits;
  }
}

// The memory of all operands of a pass. Two of the same shape have equal addresses modulo 64, so one can be given to a kernel and
// one to its reference; then all bytes of both must be equal, those around the operands, too.
class Operands final {
 public:
  Operands(std::size_t operands, std::size_t most, Random& random)
      : stride_((most + 3 * kMargin) / kMargin * kMargin), bytes_((operands + 1) * stride_) {
    for (std::byte& byte : bytes_) byte = static_cast<std::byte>(random());
  }

  // Operand k, `offset` bytes behind an aligned address.
  [[nodiscard]] std::byte* at(std::size_t k, std::size_t offset) {
    const std::size_t begin = kMargin - reinterpret_cast<std::uintptr_t>(bytes_.data()) % kMargin;
    return bytes_.data() + begin + k * stride_ + offset;
  }

  // Compares the operands; what lies before the first one may differ, because it depends on the addresses.
  [[nodiscard]] bool equals(Operands& other) { return std::memcmp(at(0, 0), other.at(0, 0), bytes_.size() - 2 * kMargin) == 0; }
  void copy_from(Operands& other) { std::memcpy(at(0, 0), other.at(0, 0), bytes_.size() - 2 * kMargin); }

 private:
  static constexpr std::size_t kMargin = 64;
  std::size_t stride_;
  std::vector<std::byte> bytes_;
};

inline void put_number(std::byte* at, std::uint64_t bits, std::size_t size) { std::memcpy(at, &bits, size); }

}  // namespace seto
