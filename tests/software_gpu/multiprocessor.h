#pragma once

#include <cstdint>

#include "tests/software_gpu/launch.h"

namespace seto::software_gpu {

// Limits of one multiprocessor; the defaults are those of an H100.
struct MultiprocessorLimits {
  std::uint32_t blocks = 32;
  std::uint32_t threads = 2048;
  std::uint32_t shared_bytes = 228U << 10;
};

// Counts what resident blocks occupy. A block keeps its share until it ends.
class Multiprocessor final {
 public:
  [[nodiscard]] static std::uint32_t shared_of(const Launch& launch) {
    return launch.function->shared_bytes + launch.request.dynamic_shared;
  }
  [[nodiscard]] bool fits(const Launch& launch, const MultiprocessorLimits& limits) const {
    return blocks_ + 1 <= limits.blocks && threads_ + launch.request.block.count() <= limits.threads &&
           shared_bytes_ + shared_of(launch) <= limits.shared_bytes;
  }
  void occupy(const Launch& launch) {
    ++blocks_;
    threads_ += launch.request.block.count();
    shared_bytes_ += shared_of(launch);
  }
  void vacate(const Launch& launch) {
    --blocks_;
    threads_ -= launch.request.block.count();
    shared_bytes_ -= shared_of(launch);
  }

 private:
  std::uint32_t blocks_ = 0, threads_ = 0, shared_bytes_ = 0;
};

}  // namespace seto::software_gpu
