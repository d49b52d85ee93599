#pragma once

#include <cstddef>
#include <cstdint>

#include "src/engine/kernels/portable.h"

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

}  // namespace seto::kernels
