#pragma once

// The words by which one source compiles for a GPU, with nvcc, and for the host, where a block has one thread.

#if defined(__CUDACC__)
#define SETO_KERNEL __device__ __forceinline__
#define SETO_KERNEL_NOINLINE __device__ __noinline__
// Before a loop. Arrays stay in registers only where the loops over them are unrolled.
#define SETO_UNROLL _Pragma("unroll")
#define SETO_NO_UNROLL _Pragma("unroll 1")
#else
#define SETO_KERNEL inline
#define SETO_KERNEL_NOINLINE inline
#define SETO_UNROLL
#define SETO_NO_UNROLL
#endif

namespace seto::kernels {

#if defined(__CUDACC__)
inline constexpr bool kOnGpu = true;
#else
inline constexpr bool kOnGpu = false;
#endif

}  // namespace seto::kernels
