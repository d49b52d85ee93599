#pragma once

#include <cstddef>
#include <cstdint>

#include "src/engine/kernels/memory.h"
#include "src/engine/kernels/pass.h"
#include "src/engine/kernels/portable.h"
#include "src/engine/kernels/threads.h"

// The part of a pass that each thread has. Vectors are dealt to warps in tiles of kRows rows. A row has one vector for each lane,
// so that a warp accesses adjacent memory, and the rows of a thread lie at constant distances.
namespace seto::kernels {

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
