#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "tests/soak/player.h"

namespace seto::soak {

// How one rank's communicators end, and what it must hear of it.
class Finale final {
 public:
  explicit Finale(Player& player);
  Trouble run();

 private:
  using Failure = std::pair<Heard, std::uint64_t>;  // and how many nanoseconds after the fault, or the call if that came later

  [[nodiscard]] Trouble finalize_all();
  [[nodiscard]] Trouble destroy_all();
  [[nodiscard]] Trouble abort();
  [[nodiscard]] Trouble abort_pending();
  [[nodiscard]] Trouble mismatch();
  [[nodiscard]] Trouble kill();

  // Calls with right results until one fails, or `most` have ended.
  [[nodiscard]] Trouble call_until_failure(std::uint64_t most, std::optional<Failure>& failure);
  // It came, soon enough, says who it was, and stays.
  [[nodiscard]] Trouble judge(const std::optional<Failure>& failure, std::atomic<std::uint64_t>& slowest_us);
  [[nodiscard]] Trouble use_others();
  [[nodiscard]] bool is_culprit() const { return player_.rank_ == plan_.culprit; }
  [[nodiscard]] bool may_name(const Heard& what) const;
  void note_fault() const;

  Player& player_;
  const Job& job_;
  const Plan& plan_;
  Seat seat_;  // in the group in which it ends, if this rank is in it
  std::atomic<std::uint64_t> calls_{0};
};

// Ends the whole process, soon after `when` is true.
std::thread kill_this_process(const Job& job, const std::function<bool()>& when);

}  // namespace seto::soak
