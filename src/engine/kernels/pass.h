#pragma once

#include <cstddef>
#include <cstdint>

#include "src/engine/kernels/memory.h"
#include "src/engine/kernels/portable.h"
#include "src/engine/kernels/threads.h"

namespace seto::kernels {

// One pass of a block over memory: target_k[i] = finish(source_0[i] op source_1[i] op ...) for every target, folded from the
// left, with the bits of src/device/reduce.h and, where operands are encoded, of src/engine/coding.h. A source may be the same
// address as a target; they do not overlap otherwise. Bit k of a mask is about source or target k.
//
// All threads of the block call a pass with the same arguments. Addresses of numbers are aligned as their type requires, those of
// encoded bytes to one byte. A pass has no barrier at its begin or end.
// A block keeps the tables of addresses in its shared memory.
struct Pass {
  const std::byte* const* sources = nullptr;
  std::byte* const* targets = nullptr;
  std::uint32_t source_count = 1;
  std::uint32_t target_count = 1;
  std::uint64_t count = 0;          // elements
  std::uint64_t scaled = 0;         // sources that are multiplied by the scalar and rounded to the element type first
  const void* scalar = nullptr;     // one value of the accumulator type
  std::uint64_t coded_sources = 0;  // encoded bytes
  std::uint64_t coded_targets = 0;
  std::byte* residual = nullptr;  // of the first element: what an encoding leaves out is added to the next one (compensation.h)
  std::uint32_t divisor = 1;      // above 1: the folded integer is divided by it, toward zero
  bool moves = false;             // one source, and nothing is computed: numbers keep their bits
  bool rounds = false;            // targets that are not encoded get the value that the bytes decode to

  [[nodiscard]] SETO_KERNEL const std::byte* source(std::uint32_t k) const { return in_shared(sources)[k]; }
  [[nodiscard]] SETO_KERNEL std::byte* target(std::uint32_t k) const { return in_shared(targets)[k]; }
};

// ---- The part of a pass that each thread has

// Vectors are dealt to warps in tiles of kRows rows. A row has one vector for each lane, so that a warp accesses adjacent memory,
// and the rows of a thread lie at constant distances.

// Where vectors can be used: all addresses of a pass are aligned after the same number of bytes.
struct Split {
  std::uint64_t head;     // bytes before the first vector
  std::uint64_t vectors;  // 0 where the addresses never agree
  std::uint64_t tail;     // bytes after the last vector
};

// Bits in which the addresses of the operands differ.
SETO_KERNEL std::uintptr_t differences_of(const Pass& pass) {
  const std::uintptr_t first = address_of(pass.target(0));
  std::uintptr_t differences = 0;
  for (std::uint32_t k = 0; k < pass.source_count; ++k) differences |= address_of(pass.source(k)) ^ first;
  for (std::uint32_t k = 1; k < pass.target_count; ++k) differences |= address_of(pass.target(k)) ^ first;
  return differences;
}

// `width` is a power of two.
SETO_KERNEL Split split_of(const Pass& pass, std::uint64_t size, std::uint32_t width) {
  const std::uint64_t head = (0 - static_cast<std::uint64_t>(address_of(pass.target(0)))) & (width - 1);
  if (size < head + width || (differences_of(pass) & (width - 1)) != 0) return {size, 0, 0};
  const std::uint64_t vectors = (size - head) / width;
  return {head, vectors, size - head - vectors * width};
}

// The tiles of this thread's warp: for (tiles; tiles.any(); tiles.next()).
template <int kRows>
struct Tiles {
  static constexpr std::uint32_t kVectors = kRows * kLanes;  // of a tile

  std::uint64_t vectors;
  Here here;
  std::uint32_t tile;

  [[nodiscard]] SETO_KERNEL std::uint64_t first() const { return std::uint64_t{tile} * kVectors + here.lane; }
  [[nodiscard]] SETO_KERNEL bool any() const { return std::uint64_t{tile} * kVectors < vectors; }
  // True if this thread has a vector in a row.
  [[nodiscard]] SETO_KERNEL bool has(int row) const { return first() + static_cast<std::uint32_t>(row) * kLanes < vectors; }
  SETO_KERNEL void next() { tile += here.warps; }
};

}  // namespace seto::kernels
