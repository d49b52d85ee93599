#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/engine/kernels/numbers.h"
#include "src/engine/kernels/portable.h"

// Loads and stores of data. They are weak: the counters of a program order them. They never use the path for memory that is
// constant while a kernel runs, because other GPUs write this memory meanwhile.
namespace seto::kernels {

struct alignas(16) Words {
  std::uint32_t word[4];
};

#if defined(__CUDACC__)

// A hint: the compiler then uses the instructions for global memory.
template <class T>
SETO_KERNEL T load(const std::byte* at) {
  __builtin_assume(__isGlobal(at));
  return *reinterpret_cast<const T*>(at);
}

template <class T>
SETO_KERNEL void store(std::byte* at, const T& value) {
  __builtin_assume(__isGlobal(at));
  *reinterpret_cast<T*>(at) = value;
}

#else

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void store(std::byte* at, const T& value) {
  std::memcpy(at, &value, sizeof value);
}

#endif

// The same number, of which compilers do not know how it changes from one iteration of a loop to the next. They compute addresses
// from it by one instruction each, instead of adding to addresses of 64 bits by two and copying them.
SETO_KERNEL std::uint32_t not_foreseen(std::uint32_t number) {
#if defined(__CUDACC__)
  asm volatile("" : "+r"(number));
#endif
  return number;
}

SETO_KERNEL std::uintptr_t address_of(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); }

// A vector of 16 bytes in registers, and its elements.
template <class S>
struct Wide {
  using Raw = Words;
  static constexpr int kElements = static_cast<int>(sizeof(Words) / sizeof(S));

  SETO_KERNEL static S get(const Words& raw, int i) {
    if constexpr (sizeof(S) == 8) {
      return bits_as<S>(std::uint64_t{raw.word[2 * i]} | std::uint64_t{raw.word[2 * i + 1]} << 32);
    } else if constexpr (sizeof(S) == 4) {
      return bits_as<S>(raw.word[i]);
    } else {
      constexpr int kInWord = static_cast<int>(4 / sizeof(S));
      return static_cast<S>(raw.word[i / kInWord] >> (i % kInWord * static_cast<int>(8 * sizeof(S))));
    }
  }

  // The words were zeros before the first put().
  SETO_KERNEL static void put(Words& raw, int i, S value) {
    if constexpr (sizeof(S) == 8) {
      const auto bits = bits_as<std::uint64_t>(value);
      raw.word[2 * i] = static_cast<std::uint32_t>(bits);
      raw.word[2 * i + 1] = static_cast<std::uint32_t>(bits >> 32);
    } else if constexpr (sizeof(S) == 4) {
      raw.word[i] = bits_as<std::uint32_t>(value);
    } else {
      constexpr int kInWord = static_cast<int>(4 / sizeof(S));
      constexpr std::uint32_t kMask = (1U << (8 * sizeof(S))) - 1;
      raw.word[i / kInWord] |= (static_cast<std::uint32_t>(value) & kMask) << (i % kInWord * static_cast<int>(8 * sizeof(S)));
    }
  }
};

// The same for one element.
template <class S>
struct Single {
  using Raw = S;
  static constexpr int kElements = 1;
  SETO_KERNEL static S get(S raw, int) { return raw; }
  SETO_KERNEL static void put(S& raw, int, S value) { raw = value; }
};

}  // namespace seto::kernels
