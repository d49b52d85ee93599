#pragma once

#include <cstdint>
#include <span>

#include "src/base/status.h"
#include "src/plan/layout.h"
#include "src/plan/plan.h"

namespace seto {

// One rank's memory. In place is what the pointers say; the programs must have been built for it.
struct BlockBuffers {
  const void* input = nullptr;
  void* output = nullptr;
  const void* scalar = nullptr;  // one value of the accumulator type, for plans that scale contributions
};

struct BlockRun {
  const Plan& plan;                       // all ranks' programs, plain or lowered
  std::span<const Layout> layouts;        // by rank
  std::span<const BlockBuffers> buffers;  // by rank
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  std::uint64_t slice_length = 1;  // elements
  std::uint32_t capacity = 1;      // slots of each channel
  std::uint64_t timeout_ms = 5000;
};

inline constexpr std::uint32_t kMaxBlocks = 2048;

// What a device kernel will do with a plan, on threads: every lane of every rank is a block that takes its steps slice by slice
// and knows nothing but counters that only grow: its rank's lanes, and for each channel and receiver what was posted and read.
// Which block runs when is the scheduler's, so this also shows a missing dependency to a race detector.
//
// Blocks until all is done. A block that waits longer than the timeout ends the run: the text names it and what it waits for.
Status run_blocks(const BlockRun& run);

}  // namespace seto
