#pragma once

#include <map>
#include <mutex>
#include <thread>

#include "src/device/cuda/driver_types.h"

namespace seto {

// Kernels of several communicators begin on a GPU in the order in which a thread launched them. Else the kernel of one could hold
// the places of one GPU, and that of another those of a second GPU: each would wait for its peer, which finds no place. A kernel
// waits until all blocks of the one before have begun, not until it has ended. Threads have no order among each other.
class LaunchOrder final {
 public:
  LaunchOrder() = default;
  LaunchOrder(const LaunchOrder&) = delete;
  LaunchOrder& operator=(const LaunchOrder&) = delete;

  // The event for which the next kernel of this communicator has to wait in this thread; null: none. The launches of one
  // communicator have an order of their own.
  [[nodiscard]] cuda::Event before(const void* communicator) const;
  // This thread has launched a kernel. Only launches of this communicator record `begun` again, until leave().
  void launched(const void* communicator, cuda::Event begun);
  // Its event will be destroyed.
  void leave(const void* communicator);

 private:
  struct Last {
    const void* communicator = nullptr;
    cuda::Event begun = nullptr;
  };

  mutable std::mutex mutex_;
  std::map<std::thread::id, Last> last_;  // without threads whose last communicator has ended
};

}  // namespace seto
