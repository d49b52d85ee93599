#pragma once

#include <cstdint>
#include <type_traits>

#include "src/base/types.h"
#include "src/engine/kernels/numbers.h"
#include "src/engine/kernels/portable.h"

// The operations of a fold on two numbers of the accumulator type. Integers wrap. avg and premul_sum fold like sum.
namespace seto::kernels {

// Unsigned, so that it wraps; at least 32 bits wide, so that it is not promoted to int.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <class T>
SETO_KERNEL T multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  else
    return a * b;
}

struct Sum {
  template <class T>
  SETO_KERNEL static T fold(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
    else
      return a + b;
  }
};

struct Product {
  template <class T>
  SETO_KERNEL static T fold(T a, T b) {
    return multiply(a, b);
  }
};

// maximum and minimum of IEEE 754-2019: a NaN is returned if there is one, and -0 is less than +0.
struct Maximum {
  template <class T>
  SETO_KERNEL static T fold(T a, T b) {
#if defined(__CUDA_ARCH__)
    if constexpr (std::is_same_v<T, float>) {
      float larger;
      asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
      return larger;
    }
#endif
    if constexpr (std::is_floating_point_v<T>) {
      using Word = typename FloatBits<T>::Word;
      if (a == b) return bits_as<T>(static_cast<Word>(bits_as<Word>(a) & bits_as<Word>(b)));
      return a > b || a != a ? a : b;
    } else {
      return a > b ? a : b;
    }
  }
};

struct Minimum {
  template <class T>
  SETO_KERNEL static T fold(T a, T b) {
#if defined(__CUDA_ARCH__)
    if constexpr (std::is_same_v<T, float>) {
      float smaller;
      asm("min.NaN.f32 %0, %1, %2;" : "=f"(smaller) : "f"(a), "f"(b));
      return smaller;
    }
#endif
    if constexpr (std::is_floating_point_v<T>) {
      using Word = typename FloatBits<T>::Word;
      if (a == b) return bits_as<T>(static_cast<Word>(bits_as<Word>(a) | bits_as<Word>(b)));
      return a < b || a != a ? a : b;
    } else {
      return a < b ? a : b;
    }
  }
};

struct BitAnd {
  template <class T>
  SETO_KERNEL static T fold(T a, T b) {
    return static_cast<T>(a & b);
  }
};

struct BitOr {
  template <class T>
  SETO_KERNEL static T fold(T a, T b) {
    return static_cast<T>(a | b);
  }
};

struct BitXor {
  template <class T>
  SETO_KERNEL static T fold(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

// For a divisor above 0: toward zero. The magnitude is divided, so that no quotient overflows and 32-bit numbers need no division
// of 64 bits.
template <class T>
SETO_KERNEL T divide(T value, std::uint32_t divisor) {
  using Word = Wrapping<T>;
  if constexpr (std::is_signed_v<T>) {
    const auto word = static_cast<Word>(value);
    const Word quotient = (value < 0 ? Word{0} - word : word) / divisor;
    return static_cast<T>(value < 0 ? Word{0} - quotient : quotient);
  } else {
    return static_cast<T>(static_cast<Word>(value) / divisor);
  }
}

}  // namespace seto::kernels
