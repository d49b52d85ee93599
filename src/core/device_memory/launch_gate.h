#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace seto {

// Keeps apart, in one process, launches of the library and calls of the driver that wait for kernels (freeing, unmapping). A
// kernel that began during such a call would keep it waiting, and may itself wait for what the calling thread has to do next.
class LaunchGate final {
 public:
  static LaunchGate& of_process();

  // On the way of every launch, once the watcher can see it. A call under way delays it, but no longer than kLongestMs, because
  // that call may wait for kernels of the program.
  void pass();
  // Launches that came to it so far. A look that begins after this was read sees those of them that have not ended.
  [[nodiscard]] std::uint64_t came() const {
    const std::lock_guard lock(mutex_);
    return came_;
  }

  // Keeps launches from passing. It holds if none came since `came` was read, before a look that found no kernel, and if no work
  // goes unwatched.
  class Closed final {
   public:
    explicit Closed(std::uint64_t came);
    ~Closed();
    Closed(const Closed&) = delete;
    Closed& operator=(const Closed&) = delete;
    [[nodiscard]] bool holds() const { return holds_; }

   private:
    bool holds_ = false;
  };
  // Work on GPUs that the watcher does not see, until its end.
  class Unwatched final {
   public:
    Unwatched();
    ~Unwatched();
    Unwatched(const Unwatched&) = delete;
    Unwatched& operator=(const Unwatched&) = delete;
  };

  static constexpr std::uint64_t kLongestMs = 1'000;

 private:
  LaunchGate() = default;

  mutable std::mutex mutex_;
  std::condition_variable opened_;
  std::uint64_t came_ = 0;
  std::size_t closed_ = 0;     // calls under way that wait for kernels
  std::size_t unwatched_ = 0;  // work under way
};

}  // namespace seto
