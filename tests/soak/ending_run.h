#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "tests/soak/player.h"

namespace seto::soak {

// The end of one rank's communicators, and the checks of what it reports.
class EndingRun final {
 public:
  explicit EndingRun(Player& player);
  Problem run();

 private:
  using Failure = std::pair<CallResult, std::uint64_t>;  // and nanoseconds since the fault, or since the call if that is later

  [[nodiscard]] Problem finalize_all();
  [[nodiscard]] Problem destroy_all();
  void spare_connections() const;
  [[nodiscard]] Problem abort();
  [[nodiscard]] Problem abort_pending();
  [[nodiscard]] Problem mismatch();
  [[nodiscard]] Problem kill();

  // Makes calls with right results until one fails, or `most` have ended.
  [[nodiscard]] Problem call_until_failure(std::uint64_t most, std::optional<Failure>& failure);
  // Checks that the failure was reported, soon enough, names the culprit, and stays.
  [[nodiscard]] Problem judge(const std::optional<Failure>& failure, std::atomic<std::uint64_t>& slowest_us);
  [[nodiscard]] Problem use_others();
  [[nodiscard]] bool is_culprit() const { return player_.rank_ == plan_.culprit; }
  [[nodiscard]] bool may_name(const CallResult& what) const;
  void note_fault() const;

  Player& player_;
  const Job& job_;
  const Plan& plan_;
  Seat seat_;  // in the group that the ending concerns, if this rank is a member
  std::atomic<std::uint64_t> calls_{0};
};

// Kills this process soon after `when` is true.
std::thread kill_this_process(const Job& job, const std::function<bool()>& when);

}  // namespace seto::soak
