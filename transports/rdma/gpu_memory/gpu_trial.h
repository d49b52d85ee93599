#pragma once

#include "src/base/clock.h"
#include "transports/gpu_buffer.h"
#include "transports/rdma/gpu_memory/loopback.h"

namespace seto::rdma {

// Whether the bytes were right.
struct GpuTrial {
  Status reads;   // from the GPU to the host
  Status writes;  // from the host to the GPU, after a flush; a failure of the first one is repeated here
};

// Random bytes through the channel in both directions. `region`: of the buffer, on the device of the channel. The queue pairs
// have ended when it returns, so nothing uses the region any more.
[[nodiscard]] GpuTrial try_gpu_memory(Loopback& loopback, GpuBuffer& buffer, const MemoryRegion& region, Deadline until);

}  // namespace seto::rdma
