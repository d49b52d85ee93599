#pragma once

#include <optional>
#include <string>

#include "src/base/clock.h"
#include "src/core/device_memory/launches.h"

namespace seto {

// A program that has passed its deadline. It was told to stop, because its blocks say then for whom they wait. That may take a
// while: kernels that lend buffers end late, and those of processes that share a GPU take turns. The watcher does not wait for
// it, because other communicators have deadlines, too.
class OverdueLaunch final {
 public:
  // Outlives the object.
  explicit OverdueLaunch(Launches& launches) : launches_(launches) {}

  [[nodiscard]] bool is_there() const { return state_.has_value(); }
  // `relay_waits`: for whom the relay of the launch waited, in words; empty: for none.
  void stop(const Launches::State& state, std::string relay_waits);
  // Whether it has said where it was, has ended, or has had the time to. `now`: after the last poll(). Else stops it once more.
  [[nodiscard]] bool has_answered(const Launches::State& now);

  // As it was when the program was stopped.
  [[nodiscard]] const Launches::State& state() const { return *state_; }
  // "waits for ...", of a collective.
  [[nodiscard]] std::string waits() const;

 private:
  [[nodiscard]] std::optional<kernels::StopReport> report() const;

  Launches& launches_;
  std::optional<Launches::State> state_;
  std::string relay_waits_;
  Deadline until_ = Deadline::never();
};

}  // namespace seto
