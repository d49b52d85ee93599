#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace seto::software_gpu {

// The bits of a value of up to 16 bytes; those above its size are 0.
struct Bits128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend bool operator==(const Bits128&, const Bits128&) = default;
};

template <std::size_t kBytes>
using UnsignedOf = std::conditional_t<
    kBytes == 1, std::uint8_t,
    std::conditional_t<kBytes == 2, std::uint16_t, std::conditional_t<kBytes == 4, std::uint32_t, std::uint64_t>>>;

// The value of type T in the low bits of a register.
template <class T>
[[nodiscard]] constexpr T value_of(std::uint64_t bits) {
  return std::bit_cast<T>(static_cast<UnsignedOf<sizeof(T)>>(bits));
}

template <class T>
[[nodiscard]] constexpr std::uint64_t bits_of(T value) {
  return std::bit_cast<UnsignedOf<sizeof(T)>>(value);
}

[[nodiscard]] constexpr std::uint64_t low_mask(std::uint32_t bytes) { return bytes >= 8 ? ~0ULL : (1ULL << (8 * bytes)) - 1; }

// The value with its sign bit copied to all higher bits.
[[nodiscard]] constexpr std::uint64_t sign_extended(std::uint64_t bits, std::uint32_t bytes) {
  const std::uint32_t shift = 64 - 8 * bytes;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << shift) >> shift);
}

}  // namespace seto::software_gpu
