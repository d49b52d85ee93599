#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "src/base/fd.h"
#include "src/base/result.h"
#include "src/core/connect/output_task.h"
#include "src/core/progress/progress.h"
#include "transports/transport.h"

namespace seto {

// The transports of a context: opens them, drives those that are open, and sleeps until one of them has something to move.
class ContextTransports final {
 public:
  // `progress` outlives the result.
  static Result<std::unique_ptr<ContextTransports>> create(const TransportSetup& setup, Progress& progress);
  ContextTransports(const ContextTransports&) = delete;
  ContextTransports& operator=(const ContextTransports&) = delete;
  ~ContextTransports();

  [[nodiscard]] std::size_t count() const { return all_.size(); }
  [[nodiscard]] const Transport& operator[](std::size_t index) const { return *all_[index]->transport; }
  // Any thread.
  [[nodiscard]] Result<Endpoint*> open(std::size_t index);
  void communicator_ended(bool failed);
  [[nodiscard]] Transport::MemoryUse memory_use() const;
  [[nodiscard]] bool sends_now() const;  // some of them

  // ---- for the holder of the progress token ----

  Moved progress() { return any_polled_.load(std::memory_order_acquire) ? progress_polled() : Moved(); }
  void arm();
  void disarm();
  // Returns when the wakeup has rung or a transport has something to move, or after the time has passed.
  void await(int milliseconds);

 private:
  struct Entry {
    explicit Entry(std::unique_ptr<Transport> made) : transport(std::move(made)), output(*transport) {}

    std::unique_ptr<Transport> transport;
    OutputTask output;
    std::atomic<bool> open{false};
    std::atomic<bool> polled{false};  // open, and has an event_fd()
  };

  explicit ContextTransports(const TransportSetup& setup, Progress& progress) : wakeup_(setup.wakeup), progress_(progress) {}

  Moved progress_polled();

  const std::shared_ptr<const Wakeup> wakeup_;
  Progress& progress_;
  Fd epoll_;
  std::mutex mutex_;  // held by open()
  std::vector<std::unique_ptr<Entry>> all_;
  std::atomic<bool> any_polled_{false};  // jobs of one host poll no transport
};

}  // namespace seto
