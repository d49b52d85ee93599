#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/types.h"

namespace seto {

// How a kernel stores its results. `past_cache` is for bytes that this core will not read again soon.
enum class Store : std::uint8_t { cached, past_cache };

inline constexpr std::uint32_t kMaxReduceSources = 64;
inline constexpr std::uint32_t kMaxReduceTargets = 64;

struct ReduceTarget {
  void* data;
  Store store;
};

// One pass: target_k[i] = finish(source_0[i] op source_1[i] op …) for every target, folded from the left.
//
// Types that are accumulated in the type itself round after every operation. The 16- and 8-bit floats are widened to
// float, folded there and rounded once, to nearest even. The fold order and every bit of the result are the same on every
// instruction set. A source may be the same address as a target; other overlap is the caller's error.
struct ReduceCall {
  const void* const* sources;
  std::uint32_t source_count;  // 1: a copy (scaled or divided where asked)
  const ReduceTarget* targets;
  std::uint32_t target_count;  // at least 1
  std::size_t count;           // elements
  // Bit k: source k is first multiplied by `scalar` in the accumulator type and rounded to the element type.
  std::uint64_t scaled_sources;
  // Points at one value of the accumulator type: float for the 16- and 8-bit floats, else the element type. Null if nothing is
  // scaled.
  const void* scalar;
  // > 1: the folded integer is divided by it (avg over integers), truncating toward zero. 1 for every float type.
  std::uint32_t divisor;
};

using ReduceFunction = void (*)(const ReduceCall&);

// The kernel for one type and operation on this machine, chosen once. avg and premul_sum fold like sum: their scaling is in the
// call. Never null. Bitwise operations exist for integers only; asked for a float type, the kernel sums.
ReduceFunction reduce_function(DataType type, ReduceOp op);

// Copies `size` bytes to every target. Source and targets do not overlap.
void copy_bytes(const void* source, const ReduceTarget* targets, std::uint32_t target_count, std::size_t size);

// Name of the instruction set in use, for `seto info` and bench headers.
const char* instruction_set();

}  // namespace seto
