#pragma once

#include <cstdint>

namespace seto::kernels {

// The entry kernels are compiled for blocks of at most so many threads, and are launched with no more.
inline constexpr std::uint32_t kMostThreads = 512;

// A multiprocessor has 65536 registers, so a thread of such a block can have so many.
inline constexpr std::uint32_t kMostRegisters = 65536 / kMostThreads;

// With so many, another kernel's blocks of 160 threads still fit beside it.
inline constexpr std::uint32_t kRegisterGoal = 96;

}  // namespace seto::kernels
