#pragma once

#include <mutex>

#include "src/device/cuda/driver_types.h"

namespace seto {

// Kernels of several communicators begin on a GPU in the order in which this process launched them. Else the kernel of one could
// hold the places of one GPU, and that of another those of a second GPU: each would wait for its peer, which finds no place.
// Each waits until all blocks of the one before have begun, not until it has ended.
class LaunchOrder final {
 public:
  LaunchOrder() = default;
  LaunchOrder(const LaunchOrder&) = delete;
  LaunchOrder& operator=(const LaunchOrder&) = delete;

  // CUDA_LAUNCH_BLOCKING: each launch waits for its kernel, so a turn would last as long, and there is nothing to order.
  [[nodiscard]] static bool launches_block();

  // From the wait for the kernel before to the launch of the own one: they must not mix with those of other threads.
  class Turn final {
   public:
    Turn(LaunchOrder& order, const void* communicator) : order_(order), communicator_(communicator), lock_(order.mutex_) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    // Null: nothing to wait for. The launches of one communicator have an order of their own.
    [[nodiscard]] cuda::Event before() const { return order_.last_ == communicator_ ? nullptr : order_.begun_; }
    // `begun` stays recorded as it is until a later turn of this communicator, or leave().
    void launched(cuda::Event begun) {
      order_.last_ = communicator_;
      order_.begun_ = begun;
    }

   private:
    LaunchOrder& order_;
    const void* communicator_;
    const std::lock_guard<std::mutex> lock_;
  };

  // The event of this communicator will be destroyed.
  void leave(const void* communicator);

 private:
  std::mutex mutex_;
  const void* last_ = nullptr;  // communicator
  cuda::Event begun_ = nullptr;
};

}  // namespace seto
