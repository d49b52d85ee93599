#pragma once

#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// The inner loops of the limit program, compiled for several instruction sets and chosen once at its start, so that a program
// built on one machine still shows the limit of another.
namespace seto::limit {

enum class Store { cached, streamed };

// The destinations of a written slice: the slot that peers read, and the user's buffer.
struct Stores {
  Store slot = Store::cached;
  Store output = Store::cached;
};

constexpr int kMaxInputs = 16;
constexpr std::size_t kGranule = 16;  // floats in a cache line

struct ReduceJob {
  float* output;
  float* slot;
  const float* inputs[kMaxInputs];
  int input_count;
  std::size_t count;  // a multiple of kGranule; every pointer is aligned to a cache line
};

struct Kernels {
  const char* name;
  void (*copy_streamed)(float* to, const float* from, std::size_t count);
  // Sums all inputs in one pass and writes each sum to the user's buffer and to the slot; [slot][output] streamed or not.
  void (*reduce[2][2])(const ReduceJob& job);
};

namespace detail {

inline void copy_plain(float* to, const float* from, std::size_t count) { std::memcpy(to, from, count * sizeof(float)); }

inline void reduce_plain(const ReduceJob& job) {
  for (std::size_t i = 0; i < job.count; ++i) {
    float sum = job.inputs[0][i];
    for (int k = 1; k < job.input_count; ++k) sum += job.inputs[k][i];
    job.output[i] = sum;
    job.slot[i] = sum;
  }
}

inline constexpr Kernels kPlain = {"plain", copy_plain, {{reduce_plain, reduce_plain}, {reduce_plain, reduce_plain}}};

#if defined(__x86_64__)

// One body for each instruction set, because a target attribute belongs to a function and cannot depend on a template argument.
// The pointers are copied to locals, because vector stores may alias the job and would force a reload each time (2-9 % measured).
#define SETO_LIMIT_REDUCE(NAME, TARGET, LANES, LOAD, ADD, STORE_SLOT, STORE_OUTPUT)                           \
  __attribute__((target(TARGET))) inline void NAME(const ReduceJob& job) {                                    \
    float* const output = job.output;                                                                         \
    float* const slot = job.slot;                                                                             \
    const float* const first = job.inputs[0];                                                                 \
    const float* const second = job.inputs[1];                                                                \
    const float* rest[kMaxInputs];                                                                            \
    const int more = job.input_count - 2;                                                                     \
    for (int k = 0; k < more; ++k) rest[k] = job.inputs[k + 2];                                               \
    if (more == 0) {                                                                                          \
      for (std::size_t i = 0; i < job.count; i += LANES) {                                                    \
        const auto sum = ADD(LOAD(first + i), LOAD(second + i));                                              \
        STORE_SLOT(slot + i, sum);                                                                            \
        STORE_OUTPUT(output + i, sum);                                                                        \
      }                                                                                                       \
    } else if (more == 2) {                                                                                   \
      const float* const third = rest[0];                                                                     \
      const float* const fourth = rest[1];                                                                    \
      for (std::size_t i = 0; i < job.count; i += LANES) {                                                    \
        const auto sum = ADD(ADD(ADD(LOAD(first + i), LOAD(second + i)), LOAD(third + i)), LOAD(fourth + i)); \
        STORE_SLOT(slot + i, sum);                                                                            \
        STORE_OUTPUT(output + i, sum);                                                                        \
      }                                                                                                       \
    } else {                                                                                                  \
      for (std::size_t i = 0; i < job.count; i += LANES) {                                                    \
        auto sum = ADD(LOAD(first + i), LOAD(second + i));                                                    \
        for (int k = 0; k < more; ++k) sum = ADD(sum, LOAD(rest[k] + i));                                     \
        STORE_SLOT(slot + i, sum);                                                                            \
        STORE_OUTPUT(output + i, sum);                                                                        \
      }                                                                                                       \
    }                                                                                                         \
    _mm_sfence();                                                                                             \
  }

#define SETO_LIMIT_SET(SET, TARGET, LANES, LOAD, ADD, STORE, STREAM)                                        \
  __attribute__((target(TARGET))) inline void copy_##SET(float* to, const float* from, std::size_t count) { \
    for (std::size_t i = 0; i < count; i += LANES) STREAM(to + i, LOAD(from + i));                          \
    _mm_sfence();                                                                                           \
  }                                                                                                         \
  SETO_LIMIT_REDUCE(reduce_##SET##_cc, TARGET, LANES, LOAD, ADD, STORE, STORE)                              \
  SETO_LIMIT_REDUCE(reduce_##SET##_cs, TARGET, LANES, LOAD, ADD, STORE, STREAM)                             \
  SETO_LIMIT_REDUCE(reduce_##SET##_sc, TARGET, LANES, LOAD, ADD, STREAM, STORE)                             \
  SETO_LIMIT_REDUCE(reduce_##SET##_ss, TARGET, LANES, LOAD, ADD, STREAM, STREAM)                            \
  inline constexpr Kernels kKernels_##SET = {                                                               \
      #SET, copy_##SET, {{reduce_##SET##_cc, reduce_##SET##_cs}, {reduce_##SET##_sc, reduce_##SET##_ss}}};

SETO_LIMIT_SET(avx512, "avx512f", 16, _mm512_load_ps, _mm512_add_ps, _mm512_store_ps, _mm512_stream_ps)
SETO_LIMIT_SET(avx2, "avx2", 8, _mm256_load_ps, _mm256_add_ps, _mm256_store_ps, _mm256_stream_ps)
SETO_LIMIT_SET(sse2, "sse2", 4, _mm_load_ps, _mm_add_ps, _mm_store_ps, _mm_stream_ps)

#undef SETO_LIMIT_SET
#undef SETO_LIMIT_REDUCE

#endif

}  // namespace detail

inline const Kernels& best_kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return detail::kKernels_avx512;
  if (__builtin_cpu_supports("avx2")) return detail::kKernels_avx2;
  return detail::kKernels_sse2;
#else
  return detail::kPlain;
#endif
}

}  // namespace seto::limit
