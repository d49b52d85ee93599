#pragma once

#include <cstdint>
#include <span>

#include "src/base/status.h"
#include "src/engine/bound_program.h"

namespace seto {

// One rank's memory. The pointers must be in place exactly where the rank's program was bound in place.
struct BlockBuffers {
  const void* input = nullptr;
  void* output = nullptr;
  const void* scalar = nullptr;  // one value of the accumulator type, for programs that scale contributions
  void* residual = nullptr;      // as Operands::residual
};

struct BlockRun {
  std::span<const BoundProgram> programs;  // by rank; plain ones without a codec, or lowered
  std::span<const BlockBuffers> buffers;   // by rank
  std::uint32_t capacity = 1;              // slots of each channel
  std::uint64_t timeout_ms = 5000;
};

inline constexpr std::uint32_t kMaxBlocks = 2048;

// Runs bound programs on threads: every lane of every rank is a block that takes its steps slice by slice. Blocks share only
// counters that grow: for each lane the steps that it has done, for each channel and receiver the slices that were posted and
// read. The scheduler decides which block runs when, so a race detector finds missing dependencies.
//
// Blocks until all is done. A block that waits longer than the timeout ends the run. The text names the block and what it waits
// for.
Status run_blocks(const BlockRun& run);

}  // namespace seto
