#pragma once

// Order matters to highway.
// clang-format off
#include "src/device/simd.h"
#include "hwy/highway.h"
// clang-format on

#include <cstddef>
#include <cstdint>

namespace seto {

// The sets that this machine runs and the kernels were compiled for: bits of HWY_TARGETS, the lowest is the best, at least one.
[[nodiscard]] std::int64_t usable_sets();
// For tests: as if the machine had these alone; 0: what it has.
void pretend_sets(std::int64_t sets);

// Which entry of a table of SETO_EVERY_SET is for the best usable set.
[[nodiscard]] inline std::size_t chosen_set() {
  constexpr std::uint64_t kPlain = HWY_CHOSEN_TARGET_MASK_SCALAR;
  return static_cast<std::size_t>(__builtin_ctzll(static_cast<std::uint64_t>(HWY_CHOSEN_TARGET_SHIFT(usable_sets())) | kPlain)) -
         1;
}

}  // namespace seto

// A function as it was compiled for each set. Highway's own tables want its library, whose loading costs every program that is
// linked with it 3.4 ms of a core (the start of a benchmark in it); we take nothing but its headers.
#define SETO_EVERY_SET(function) \
  { HWY_CHOOSE_TARGET_LIST(function), HWY_CHOOSE_FALLBACK(function) }
