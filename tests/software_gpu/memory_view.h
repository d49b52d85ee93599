#pragma once

#include <cstdint>
#include <vector>

#include "tests/software_gpu/store_buffer.h"

namespace seto::software_gpu {

// Times in the model's own clock. A load must see every store that was visible in its GPU at `gpu`, and every store that was
// visible in the whole system at `system`.
struct Horizon {
  Clock gpu = 0;
  Clock system = 0;

  void raise(const Horizon& other) {
    gpu = gpu > other.gpu ? gpu : other.gpu;
    system = system > other.system ? system : other.system;
  }
};

// A location that a strong load has read: a later strong load of the same thread may not read an older value.
struct SeenLocation {
  std::uint64_t granule = 0;
  Horizon horizon{};
};

// The ends of the memory model at a thread, at a block and at a GPU: each has stores that the next one does not see yet.
struct MemoryView {
  std::uint32_t gpu = 0;
  std::uint32_t block = 0;  // a number that is unique in the machine
  StoreBuffer stores{};
  Horizon known{};    // raised by acquires, fences and barriers
  Horizon started{};  // the horizon at the begin of the kernel, which is all that read-only loads respect
  std::vector<SeenLocation> seen{};
  MemoryView* parent = nullptr;  // thread -> block -> GPU
};

}  // namespace seto::software_gpu
