#pragma once

#include <cstdint>

#include "src/engine/kernels/flags.h"
#include "src/engine/kernels/memory.h"
#include "src/engine/kernels/multicast/multicast_program.h"
#include "src/engine/kernels/portable.h"

// Accesses of a multicast address, which GPUs have from compute capability 9.0 on. The code for older GPUs, on which the host
// never launches it, stops at the first meeting. Threads of the host have no such memory.
#if defined(__CUDACC__)
namespace seto::kernels {

#if __CUDA_ARCH__ >= 900

// Accesses by an address of one GPU and by the multicast address are accesses by two aliases of the same memory: this orders
// those before it and those after it.
SETO_KERNEL void fence_aliases() { asm volatile("fence.proxy.alias;" ::: "memory"); }

// As store_release(), to the memory of all ranks.
SETO_KERNEL void store_release_to_all(Address word, std::uint64_t value) {
  asm volatile("multimem.st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

// Data: weak, as all loads and stores of data.
SETO_KERNEL void store_to_all(Address unit, const Words& value) {
  asm volatile("multimem.st.weak.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(unit), "r"(value.word[0]), "r"(value.word[1]),
               "r"(value.word[2]), "r"(value.word[3])
               : "memory");
}

#define SETO_SUM_OF_ALL(type, address, sum)                                                 \
  asm volatile("multimem.ld_reduce.weak.global.add." type " {%0, %1, %2, %3}, [%4];"        \
               : "=r"(sum.word[0]), "=r"(sum.word[1]), "=r"(sum.word[2]), "=r"(sum.word[3]) \
               : "l"(address)                                                               \
               : "memory")

// The sum of a unit over all ranks, in an order of the switch's. Halves are summed in single precision, and rounded once.
template <MulticastSum kSum>
SETO_KERNEL Words sum_of_all(Address unit) {
  Words sum;
  if constexpr (kSum == MulticastSum::float32) SETO_SUM_OF_ALL("v4.f32", unit, sum);
  if constexpr (kSum == MulticastSum::float16) SETO_SUM_OF_ALL("acc::f32.v4.f16x2", unit, sum);
  if constexpr (kSum == MulticastSum::bfloat16) SETO_SUM_OF_ALL("acc::f32.v4.bf16x2", unit, sum);
  if constexpr (kSum == MulticastSum::integer32) {
    SETO_UNROLL for (std::uint32_t i = 0; i < 4; ++i) asm volatile("multimem.ld_reduce.weak.global.add.u32 %0, [%1];" :
                                                                   "=r"(sum.word[i]) : "l"(unit + 4 * i) : "memory");
  }
  if constexpr (kSum == MulticastSum::integer64 || kSum == MulticastSum::float64) {
    SETO_UNROLL for (std::uint32_t i = 0; i < 2; ++i) {
      std::uint64_t bits;
      if constexpr (kSum == MulticastSum::integer64)
        asm volatile("multimem.ld_reduce.weak.global.add.u64 %0, [%1];" : "=l"(bits) : "l"(unit + 8 * i) : "memory");
      else
        asm volatile("multimem.ld_reduce.weak.global.add.f64 %0, [%1];" : "=l"(bits) : "l"(unit + 8 * i) : "memory");
      sum.word[2 * i] = static_cast<std::uint32_t>(bits);
      sum.word[2 * i + 1] = static_cast<std::uint32_t>(bits >> 32);
    }
  }
  return sum;
}

#undef SETO_SUM_OF_ALL

#else

SETO_KERNEL void fence_aliases() { asm volatile("trap;"); }
SETO_KERNEL void store_release_to_all(Address word, std::uint64_t value) { store_release(at<std::uint64_t>(word), value); }
SETO_KERNEL void store_to_all(Address unit, const Words& value) { store(at<std::byte>(unit), value); }
template <MulticastSum kSum>
SETO_KERNEL Words sum_of_all(Address unit) {
  return load<Words>(at<const std::byte>(unit));
}

#endif

}  // namespace seto::kernels
#endif
