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

// For a call whose buffers other GPUs read. They reach memory of cuMemAlloc; memory of pools and of virtual addresses is visible
// to the GPUs for which its owner has allowed it only, so the call works on a copy of it. `memory` gives so many bytes for the
// copies. The call was checked; the context is current.
using CopyMemory = std::function<Result<kernels::Address>(std::size_t size)>;
Result<CallBuffers> lendable_buffers(const GpuContext& gpu, const Call& call, const CallSizes& sizes, const CopyMemory& memory);

}  // namespace seto
