#pragma once

#include <atomic>
#include <mutex>
#include <thread>

namespace seto::software_gpu::driver {

// The lock of the whole stand-in. The thread that runs the machine holds it most of the time; it gives way to callers, which a
// plain mutex would let starve.
class TurnMutex final {
 public:
  void lock() {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    mutex_.lock();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  void unlock() { mutex_.unlock(); }

  // For the holder between two turns. It ends as soon as each caller has got the lock, which none keeps.
  void give_way() {
    mutex_.unlock();
    while (waiting_.load(std::memory_order_relaxed) > 0) std::this_thread::yield();
    mutex_.lock();
  }

 private:
  std::mutex mutex_;
  std::atomic<int> waiting_{0};
};

}  // namespace seto::software_gpu::driver
