#pragma once

// Include this before anything of highway. Two kinds of targets are left out: SSSE3, because every server of the last fifteen
// years has more, and SVE, whose vectors cannot be members of a struct (NEON serves those machines).
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

#include "src/base/types.h"
#include "src/device/reduce.h"

namespace seto {

using CopyFunction = void (*)(const void* source, const ReduceTarget* targets, std::uint32_t target_count, std::size_t size);

// Each returns the function for the best instruction set of this machine. A call looks nothing up again.
// avg and premul_sum are replaced by sum before these functions are called.
ReduceFunction integer_reduce_function(DataType type, ReduceOp op);
ReduceFunction float_reduce_function(DataType type, ReduceOp op);   // float32, float64
ReduceFunction narrow_reduce_function(DataType type, ReduceOp op);  // the 16- and 8-bit floats

// Copies in one pass over the source with vector stores, for any size. copy_bytes decides when that is faster than memcpy.
CopyFunction copy_function();

}  // namespace seto
