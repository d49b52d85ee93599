#pragma once

#include <functional>
#include <vector>

#include "src/core/call/collective_call.h"
#include "src/core/device_memory/gpu_context.h"
#include "src/engine/kernels/device_program.h"

namespace seto {

// A copy within the memory of a GPU, in the stream of a call.
struct BufferCopy {
  cuda::DevicePointer to = 0, from = 0;
  std::size_t size = 0;
};

// The buffers of a call as its kernel uses them.
struct CallBuffers {
  kernels::Address input = 0, output = 0;
  std::vector<BufferCopy> before, after;  // of the kernel
  const char* copied_because = nullptr;   // null: the kernel uses the caller's buffers
};

// Bytes of the buffers of a rank.
struct CallSizes {
  std::size_t input = 0, output = 0;
};

struct BufferRange {
  kernels::Address begin = 0;
  std::size_t size = 0;

  [[nodiscard]] kernels::Address end() const { return begin + size; }
  [[nodiscard]] bool meets(const BufferRange& other) const { return begin < other.end() && other.begin < end(); }
};

// Null: all GPUs of this process that have peer access can read the range, which may lie in several allocations. Else the reason.
// They reach memory of cuMemAlloc and of setoMemAlloc; memory of pools and of virtual addresses is visible to the GPUs for which
// its owner has allowed it only.
Result<const char*> obstacle_in(const cuda::Driver& driver, const BufferRange& range);

// For a call whose buffers other GPUs read. Where there is an obstacle, the call works on a copy, for which `memory` gives so
// many bytes. The call was checked; the context is current.
struct LendingRules {
  std::function<Result<const char*>(const BufferRange& range)> obstacle;
  std::function<Result<kernels::Address>(std::size_t size)> memory;
};
Result<CallBuffers> lendable_buffers(const Call& call, const CallSizes& sizes, const LendingRules& rules);

}  // namespace seto
