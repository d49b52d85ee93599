#pragma once

#include <atomic>
#include <cstdint>

#include "src/base/config.h"
#include "src/base/result.h"
#include "src/core/record/flight_recorder.h"
#include "src/core/record/wait_reports.h"

namespace seto {

class Communicator;

// The communicators of this process, as room `dump` tells of them when another process asks. Any thread.
class StatusListing {
 public:
  virtual ~StatusListing() = default;
  // A communicator is told of from add() to remove(), which waits for an answer that is being made.
  virtual void add(const Communicator& communicator) = 0;
  virtual void remove(const Communicator& communicator) = 0;
};

// Writes the dumps that no caller asks for: after a failure or a signal. Room `dump` implements the interface; this room only
// says when a dump is due. Any thread.
class DumpRequests {
 public:
  virtual ~DumpRequests() = default;
  // From now on this signal requests dumps of all communicators. A process has one such signal.
  virtual Status listen_to(int signal) = 0;
  // A communicator is known from add() to remove(), which waits for a dump that is being written.
  virtual void add(const Communicator& communicator) = 0;
  virtual void remove(const Communicator& communicator) = 0;
  // Requests a dump and does not wait for it.
  virtual void request(const Communicator& communicator) = 0;
};

// The part of a communicator that other threads may read while it works: its flight recorder, the wait reports of its calls, and
// the time of its failure.
class Observability final {
 public:
  Observability() = default;
  ~Observability() { stop(); }
  Observability(const Observability&) = delete;
  Observability& operator=(const Observability&) = delete;

  // The last step of making a communicator: from now on any thread may dump it, and its calls are recorded. The calls that
  // measured its links were made earlier, so the recorder does not hold them. `dumps` may be null: then there are no automatic
  // dumps. `listing` may be null: then its status cannot be asked for.
  void start(const Communicator& communicator, const Config& config, DumpRequests* dumps, StatusListing* listing);
  // Called before any part of the communicator is destroyed: writes a requested dump now and prevents further ones.
  void stop();
  // Called once, after the other ranks have been told. Any thread; does not wait.
  void failed();

  [[nodiscard]] FlightRecorder& recorder() { return recorder_; }
  [[nodiscard]] const FlightRecorder& recorder() const { return recorder_; }
  [[nodiscard]] WaitReports& waits() const { return waits_; }
  // Wall clock in microseconds; 0: the communicator has not failed.
  [[nodiscard]] std::uint64_t failed_at_us() const { return failed_at_us_.load(std::memory_order_acquire); }

 private:
  const Communicator* communicator_ = nullptr;
  DumpRequests* dumps_ = nullptr;  // null: no automatic dumps
  StatusListing* listing_ = nullptr;
  bool dumps_after_failure_ = false;
  FlightRecorder recorder_;
  mutable WaitReports waits_;
  std::atomic<std::uint64_t> failed_at_us_{0};
};

// The wall clock in microseconds.
[[nodiscard]] std::uint64_t wall_us();

}  // namespace seto
