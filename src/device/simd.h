#pragma once

// Include this before anything of highway. Left out: SSSE3, which no server of the last fifteen years stops at, and the SVE
// targets, whose vectors cannot be members of a struct (NEON serves those machines).
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

#include "src/base/types.h"
#include "src/device/reduce.h"

namespace seto {

using CopyFunction = void (*)(const void* source, const ReduceTarget* targets, std::uint32_t target_count, std::size_t size);

// Each is the final function for the best set of this machine: nothing is looked up again in a call.
// avg and premul_sum have become sum before they come here.
ReduceFunction integer_reduce_function(DataType type, ReduceOp op);
ReduceFunction float_reduce_function(DataType type, ReduceOp op);   // float32, float64
ReduceFunction narrow_reduce_function(DataType type, ReduceOp op);  // the 16- and 8-bit floats

// One pass over the source with vector stores, whatever the size; copy_bytes decides when that beats memcpy.
CopyFunction copy_function();

}  // namespace seto
