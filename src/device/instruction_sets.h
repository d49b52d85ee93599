#pragma once

// Highway depends on the order of these lines.
// clang-format off
#include "src/device/simd.h"
#include "hwy/highway.h"
// clang-format on

#include <cstddef>
#include <cstdint>

namespace seto {

// The instruction sets that this machine runs and the kernels were compiled for, as bits of HWY_TARGETS. The lowest bit is the
// best set. At least one bit is set.
[[nodiscard]] std::int64_t usable_sets();
// For tests: pretends that the machine has only these sets; 0 restores the real ones.
void pretend_sets(std::int64_t sets);

// The index of the best usable set in a table of SETO_EVERY_SET.
[[nodiscard]] inline std::size_t chosen_set() {
  constexpr std::uint64_t kPlain = HWY_CHOSEN_TARGET_MASK_SCALAR;
  return static_cast<std::size_t>(__builtin_ctzll(static_cast<std::uint64_t>(HWY_CHOSEN_TARGET_SHIFT(usable_sets())) | kPlain)) -
         1;
}

}  // namespace seto

// A table of one function compiled for each set. Highway's own tables need its library, and loading that library costs every
// program 3.4 ms of a core (it contains a benchmark that starts). So only its headers are used.
#define SETO_EVERY_SET(function) \
  { HWY_CHOOSE_TARGET_LIST(function), HWY_CHOOSE_FALLBACK(function) }
