#pragma once

#include <cstdint>

#include "src/engine/kernels/portable.h"

#if !defined(__CUDACC__)
#include <atomic>
#include <thread>
#endif

// Words of memory by which blocks of different GPUs, and the host, tell each other how far they are. Their scope is the whole
// system: the other end may be another GPU, or a thread of the host.
namespace seto::kernels {

#if defined(__CUDACC__)

// Makes all that this block has read or written before its last barrier precede the new value for a thread that acquires it.
SETO_KERNEL void store_release(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

SETO_KERNEL std::uint64_t load_acquire(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}

// Orders nothing: for words that carry no other data with them.
SETO_KERNEL std::uint32_t load_relaxed(const std::uint32_t* word) {
  std::uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}

SETO_KERNEL void store_relaxed(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

// The same with a word of 32 bits.
SETO_KERNEL void store_relaxed(std::uint32_t* word, std::uint32_t value) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

// Words of marked messages (marked_exchange.h): data and mark in one access of 64 bits, the widest that the memory model
// of PTX takes for one operation. Elements of a vector are operations of their own, in any order. They order nothing.
SETO_KERNEL void store_marked(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.relaxed.sys.global.b64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

SETO_KERNEL std::uint64_t load_marked(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.relaxed.sys.global.b64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}

// Counts blocks of one GPU. The block that gets the last number has seen all that the blocks before it did.
SETO_KERNEL std::uint32_t count_up(std::uint32_t* word) {
  std::uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(word) : "memory");
  return before;
}

// The same with a word of 64 bits.
SETO_KERNEL std::uint64_t count_up(std::uint64_t* word) {
  std::uint64_t before;
  asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], 1;" : "=l"(before) : "l"(word) : "memory");
  return before;
}

// After count_up(). What the counts before it have published stays published.
SETO_KERNEL void add_relaxed(std::uint64_t* word, std::uint64_t value) {
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

// Between two looks at a word that another block writes.
SETO_KERNEL void wait_a_little() { __nanosleep(20); }

#else

inline void store_release(std::uint64_t* word, std::uint64_t value) {
  std::atomic_ref(*word).store(value, std::memory_order_release);
}

inline std::uint64_t load_acquire(const std::uint64_t* word) {
  return std::atomic_ref(*const_cast<std::uint64_t*>(word)).load(std::memory_order_acquire);
}

inline std::uint32_t load_relaxed(const std::uint32_t* word) {
  return std::atomic_ref(*const_cast<std::uint32_t*>(word)).load(std::memory_order_relaxed);
}

inline void store_relaxed(std::uint64_t* word, std::uint64_t value) {
  std::atomic_ref(*word).store(value, std::memory_order_relaxed);
}

inline void store_relaxed(std::uint32_t* word, std::uint32_t value) {
  std::atomic_ref(*word).store(value, std::memory_order_relaxed);
}

inline void store_marked(std::uint64_t* word, std::uint64_t value) { store_relaxed(word, value); }

inline std::uint64_t load_marked(const std::uint64_t* word) {
  return std::atomic_ref(*const_cast<std::uint64_t*>(word)).load(std::memory_order_relaxed);
}

inline std::uint32_t count_up(std::uint32_t* word) { return std::atomic_ref(*word).fetch_add(1, std::memory_order_acq_rel); }

inline std::uint64_t count_up(std::uint64_t* word) { return std::atomic_ref(*word).fetch_add(1, std::memory_order_acq_rel); }

inline void add_relaxed(std::uint64_t* word, std::uint64_t value) {
  std::atomic_ref(*word).fetch_add(value, std::memory_order_relaxed);
}

inline void wait_a_little() { std::this_thread::yield(); }

#endif

}  // namespace seto::kernels
