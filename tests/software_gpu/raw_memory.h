#pragma once

#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "tests/software_gpu/bits.h"

namespace seto::software_gpu {

// Accesses to the memory below the model, which other processes may share: an aligned access of up to 8 bytes is one, and one of
// 16 bytes is one on x86 processors with AVX, as their manuals state. Addresses are aligned.
template <class T>
[[nodiscard]] T* at_address(std::uint64_t address) {
  return reinterpret_cast<T*>(address);  // device addresses are addresses of this process
}

[[nodiscard]] inline Bits128 read_raw(std::uint64_t address, std::uint32_t bytes) {
  switch (bytes) {
    case 1:
      return {__atomic_load_n(at_address<std::uint8_t>(address), __ATOMIC_ACQUIRE), 0};
    case 2:
      return {__atomic_load_n(at_address<std::uint16_t>(address), __ATOMIC_ACQUIRE), 0};
    case 4:
      return {__atomic_load_n(at_address<std::uint32_t>(address), __ATOMIC_ACQUIRE), 0};
    case 8:
      return {__atomic_load_n(at_address<std::uint64_t>(address), __ATOMIC_ACQUIRE), 0};
    default: {
      Bits128 value;
#if defined(__SSE2__)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(&value), _mm_load_si128(at_address<const __m128i>(address)));
#else
      std::memcpy(&value, at_address<const void>(address), sizeof(value));
#endif
      return value;
    }
  }
}

inline void write_raw(std::uint64_t address, Bits128 value, std::uint32_t bytes) {
  switch (bytes) {
    case 1:
      __atomic_store_n(at_address<std::uint8_t>(address), static_cast<std::uint8_t>(value.low), __ATOMIC_RELEASE);
      return;
    case 2:
      __atomic_store_n(at_address<std::uint16_t>(address), static_cast<std::uint16_t>(value.low), __ATOMIC_RELEASE);
      return;
    case 4:
      __atomic_store_n(at_address<std::uint32_t>(address), static_cast<std::uint32_t>(value.low), __ATOMIC_RELEASE);
      return;
    case 8:
      __atomic_store_n(at_address<std::uint64_t>(address), value.low, __ATOMIC_RELEASE);
      return;
    default:
#if defined(__SSE2__)
      _mm_store_si128(at_address<__m128i>(address), _mm_loadu_si128(reinterpret_cast<const __m128i*>(&value)));
#else
      std::memcpy(at_address<void>(address), &value, sizeof(value));
#endif
  }
}

// Replaces `expected` by `desired` if it is still there.
[[nodiscard]] inline bool exchange_raw(std::uint64_t address, std::uint64_t expected, std::uint64_t desired,
                                       std::uint32_t bytes) {
  const auto attempt = [&]<class T>(T old) {
    return __atomic_compare_exchange_n(at_address<T>(address), &old, static_cast<T>(desired), false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
  };
  switch (bytes) {
    case 2:
      return attempt(static_cast<std::uint16_t>(expected));
    case 4:
      return attempt(static_cast<std::uint32_t>(expected));
    default:
      return attempt(expected);
  }
}

}  // namespace seto::software_gpu
