#pragma once

#include <cstddef>
#include <cstdint>

#include "src/engine/kernels/device_program.h"

// One rank's part of an all_reduce by NVLink multicast (decision 49), as plain data in memory of the device. Every rank has
// memory of the library on its GPU, and all of it lies behind one address, the multicast address: a load from there returns the
// sum over all ranks, and a store to there reaches all ranks.
namespace seto::kernels {

// That memory begins with flags, zeros at first: one of each rank for each block. The pieces of the blocks follow.
inline constexpr std::size_t kMulticastMemory = std::size_t{8} << 20;
inline constexpr std::uint32_t kMostMulticastBlocks = 32;
inline constexpr std::uint32_t kMostMulticastRanks = 32;
inline constexpr std::size_t kMulticastFlags = kMostMulticastBlocks * kMostMulticastRanks * kFlagStride;
inline constexpr std::size_t kMulticastUnit = 16;  // bytes that a thread sums at a time
// The longest piece: all blocks together use all memory.
inline constexpr std::size_t kMulticastPiece =
    (kMulticastMemory - kMulticastFlags) / kMostMulticastBlocks / kMulticastUnit * kMulticastUnit;

enum class MulticastSum : std::uint32_t { none, float32, float64, float16, bfloat16, integer32, integer64 };

struct MulticastProgram {
  MulticastSum sum = MulticastSum::none;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::uint32_t blocks = 1;
  std::uint64_t size = 0;   // bytes of the call
  std::uint64_t piece = 0;  // bytes of a block in a round, a multiple of kMulticastUnit
  Address own = 0;          // this rank's memory of the library
  Address all = 0;          // the multicast address of the memory of all ranks
};

// From the begin of that memory.
SETO_KERNEL std::uint64_t multicast_flag(std::uint32_t block, std::uint32_t rank) {
  return (std::uint64_t{block} * kMostMulticastRanks + rank) * kFlagStride;
}

}  // namespace seto::kernels
