#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "src/core/device_memory/gpu_context.h"

namespace seto {

enum class ArenaMemory : std::uint8_t { device, pinned };  // pinned: memory of the host that the GPU copies from

// Memory that is taken from the driver in large pieces and given back to it only at the end: freeing waits for all kernels, and a
// kernel may wait for a peer. The context is current in all calls. One thread at a time.
class DeviceArena final {
 public:
  DeviceArena(const cuda::Driver& driver, ArenaMemory memory) : driver_(driver), memory_(memory) {}
  ~DeviceArena();
  DeviceArena(const DeviceArena&) = delete;
  DeviceArena& operator=(const DeviceArena&) = delete;

  // Aligned to 256 bytes.
  Result<cuda::DevicePointer> allocate(std::size_t size);
  // Takes the first piece, which would else be taken while kernels run.
  Status prepare();
  // For the next allocations.
  void release(cuda::DevicePointer pointer);

 private:
  static constexpr std::size_t kAlignment = 256;
  static constexpr std::size_t kPiece = std::size_t{256} << 10;

  Result<cuda::DevicePointer> take_piece(std::size_t size);

  const cuda::Driver& driver_;
  const ArenaMemory memory_;
  std::vector<cuda::DevicePointer> pieces_;
  std::map<cuda::DevicePointer, std::size_t> free_;
  std::map<cuda::DevicePointer, std::size_t> used_;
};

}  // namespace seto
