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

// For what a block keeps in the memory that its threads share: the compiler then uses the instructions for it. (Where the same
// pointer was said twice to be shared, by __builtin_assume, nvcc 13.0 held what follows to be impossible, and left it out.)
template <class T>
SETO_KERNEL T* in_shared(T* at) {
#if defined(__CUDACC__)
  return static_cast<T*>(__cvta_shared_to_generic(__cvta_generic_to_shared(at)));
#else
  return at;
#endif
}

#if defined(__CUDACC__)
inline constexpr bool kOnGpu = true;
#else
inline constexpr bool kOnGpu = false;
#endif

}  // namespace seto::kernels
