#pragma once

#include "src/base/fd.h"
#include "src/device/cuda/driver.h"

// Memory of a GPU that other devices of the host read and write without the processors, as network cards do.
namespace seto::cuda {

// The step between the completion that tells the host of such a write, and a read of these bytes by the GPU.
enum class DirectFlush : std::uint8_t {
  none,        // such writes are in order for their GPU
  by_host,     // flush_direct_writes()
  impossible,  // nothing that the host can do ensures that the GPU reads the new bytes
};

struct DirectAccess {
  bool dma_buf = false;  // the driver hands memory to drivers of other devices
  DirectFlush flush = DirectFlush::impossible;
};

// Pure: the answers to gpu_direct_write_order and gpu_direct_flush_options decide.
[[nodiscard]] DirectFlush flush_for(int write_order, int flush_options);

[[nodiscard]] Result<DirectAccess> direct_access_of(const Driver& driver, DeviceNumber gpu);

// Whole pages of the host, in memory of cuMemAlloc of the current context, as a dma-buf that begins with them.
[[nodiscard]] Result<Fd> export_dma_buf(const Driver& driver, DevicePointer memory, std::size_t size);

// When it returns success, kernels of the current context that start later, or learn of it later, read what devices had written
// before.
[[nodiscard]] Status flush_direct_writes(const Driver& driver, DirectFlush flush);

}  // namespace seto::cuda
