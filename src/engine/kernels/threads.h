#pragma once

#include <cstdint>

#include "src/engine/kernels/portable.h"

// The threads of a block. On the host a block is one thread, which is also its only warp and lane.
namespace seto::kernels {

#if defined(__CUDACC__)

inline constexpr std::uint32_t kLanes = 32;  // of a warp

SETO_KERNEL std::uint32_t thread_index() { return threadIdx.x; }
SETO_KERNEL std::uint32_t thread_count() { return blockDim.x; }
SETO_KERNEL std::uint32_t block_index() { return blockIdx.x; }
// Orders the accesses of all threads of the block before it before those after it. All threads of the block call it.
SETO_KERNEL void barrier() { __syncthreads(); }
// A barrier that also tells every thread whether any of them passed true.
SETO_KERNEL bool barrier_any(bool value) { return __syncthreads_or(value ? 1 : 0) != 0; }

// The same for the lanes of a warp.
SETO_KERNEL void warp_barrier() { __syncwarp(); }

// The largest value that a lane of the warp has. All lanes call it.
template <class Word>
SETO_KERNEL Word largest_of_warp(Word value) {
  for (std::uint32_t distance = kLanes / 2; distance > 0; distance /= 2) {
    const Word other = __shfl_xor_sync(0xFFFFFFFFU, value, static_cast<int>(distance));
    value = other > value ? other : value;
  }
  return value;
}

#else

inline constexpr std::uint32_t kLanes = 1;

inline std::uint32_t thread_index() { return 0; }
inline std::uint32_t thread_count() { return 1; }
inline void barrier() {}
inline bool barrier_any(bool value) { return value; }
inline void warp_barrier() {}

template <class Word>
Word largest_of_warp(Word value) {
  return value;
}

#endif

// Where a thread is. Each form of a pass asks anew: a compiler that knew the answer to be the same would compute the addresses of
// all forms before the first one, and has no registers for them.
struct Here {
  std::uint32_t lane;
  std::uint32_t warp;
  std::uint32_t warps;
};

SETO_KERNEL Here here() {
  std::uint32_t thread = thread_index();
  std::uint32_t threads = thread_count();
#if defined(__CUDACC__)
  asm volatile("" : "+r"(thread), "+r"(threads));
#endif
  return {thread % kLanes, thread / kLanes, threads / kLanes};
}

SETO_KERNEL std::uint32_t lane_index() { return thread_index() % kLanes; }
SETO_KERNEL std::uint32_t warp_index() { return thread_index() / kLanes; }
SETO_KERNEL std::uint32_t warp_count() { return thread_count() / kLanes; }

}  // namespace seto::kernels
