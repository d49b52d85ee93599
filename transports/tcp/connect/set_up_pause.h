#pragma once

#include <algorithm>
#include <cstdint>

namespace seto::tcp {

// When the next rail of a link may be set up. The pause grows with each set-up that fails, so a link is without a rail that works
// again for at most about as long as it did not work. Pure: its caller reads the clock.
class SetUpPause final {
 public:
  static constexpr std::uint64_t kFirstNs = 100'000'000;
  static constexpr std::uint64_t kLongestNs = 600'000'000'000;
  // After a set-up that succeeded: the rail may break at once, each time.
  static constexpr std::uint64_t kLongestOfWorkingNs = 10'000'000'000;

  [[nodiscard]] bool over(std::uint64_t now_ns) const { return now_ns >= next_ns_; }
  void failed(std::uint64_t now_ns) {
    pause_ns_ = std::clamp(2 * pause_ns_, kFirstNs, kLongestNs);
    next_ns_ = now_ns + pause_ns_;
  }
  // One that breaks at once is not tried again at once.
  void succeeded(std::uint64_t now_ns) {
    pause_ns_ = std::min(pause_ns_, kLongestOfWorkingNs);
    next_ns_ = now_ns + pause_ns_;
    pause_ns_ = std::max(kFirstNs, pause_ns_ / 2);
  }
  // A port has come up, or has another address: that may have been the cause. An address may follow a port, and a port that comes
  // and goes is not tried each time.
  void something_changed(std::uint64_t now_ns) {
    pause_ns_ = std::min(pause_ns_, kFirstNs);
    next_ns_ = std::min(next_ns_, now_ns + kFirstNs);
  }

 private:
  std::uint64_t pause_ns_ = 0;
  std::uint64_t next_ns_ = 0;
};

}  // namespace seto::tcp
