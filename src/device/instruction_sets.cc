#include "src/device/instruction_sets.h"

#include <atomic>

#if HWY_ARCH_X86
#include <cpuid.h>
#endif

namespace seto {
namespace {

#if HWY_ARCH_X86
// Not every compiler's __builtin_cpu_supports knows these two.
bool has_lzcnt_and_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  return f16c && __get_cpuid(0x8000'0001, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_LZCNT) != 0;
}

// The features that highway lets the compiler use for each set. The builtins also check that the system saves the registers.
std::int64_t sets_of_machine() {
  std::int64_t sets = 0;
  const bool sse4 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("pclmul") &&
                    __builtin_cpu_supports("aes");
  if (sse4) sets |= HWY_SSE4;
  const bool avx2 = sse4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("fma") && has_lzcnt_and_f16c();
  if (avx2) sets |= HWY_AVX2;
  const bool avx3 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd");
  if (avx3) sets |= HWY_AVX3;
  return sets;
}
#else
std::int64_t sets_of_machine() { return 0; }
#endif

std::atomic<std::int64_t> pretended = 0;

}  // namespace

std::int64_t usable_sets() {
  static const std::int64_t own = (sets_of_machine() | HWY_STATIC_TARGET) & HWY_TARGETS;
  const std::int64_t instead = pretended.load(std::memory_order_relaxed);
  return instead != 0 ? instead : own;
}

void pretend_sets(std::int64_t sets) { pretended.store(sets, std::memory_order_relaxed); }

}  // namespace seto
