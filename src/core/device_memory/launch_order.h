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

  class Member {
   public:
    virtual ~Member() = default;
    // Nothing waits for its kernels any more. Any thread may ask, until leave().
    [[nodiscard]] virtual bool has_failed() const = 0;
  };
  // The event for which the next kernel of this member has to wait in this thread; null: none. The launches of one member have an
  // order of their own.
  [[nodiscard]] cuda::Event before(const Member& member) const;
  // This thread has launched a kernel. Only launches of this member record `begun` again; they are in the order of the thread
  // that made the last one.
  void launched(const Member& member, cuda::Event begun);
  void leave(const Member& member);

 private:
  struct Last {
    const Member* member = nullptr;
    cuda::Event begun = nullptr;
  };

  mutable std::mutex mutex_;
  std::map<std::thread::id, Last> last_;  // without threads whose last member has left
};

}  // namespace seto
