#pragma once

#include <atomic>
#include <cstdint>

namespace seto::tcp {

// Whether news of a rail are worth a line at info level: with a port all rails on it break and return, one for each peer. Any
// thread.
class RailNews final {
 public:
  static constexpr std::uint64_t kQuietNs = 60'000'000'000;

  // True of the first rail that breaks, and of one after a minute in which nothing was said.
  bool broke(std::uint64_t now_ns) {
    std::uint64_t before = broke_ns_.load(std::memory_order_relaxed);
    return (before == 0 || now_ns - before >= kQuietNs) &&
           broke_ns_.compare_exchange_strong(before, now_ns, std::memory_order_relaxed);
  }
  // The data of one link goes over rails, or over TCP. True: that is not what was said last.
  bool goes_over(bool rails) {
    const Said now = rails ? Said::rails : Said::sockets;
    return said_.exchange(now, std::memory_order_relaxed) != now;
  }

 private:
  enum class Said : std::uint8_t { nothing, rails, sockets };
  std::atomic<std::uint64_t> broke_ns_{0};
  std::atomic<Said> said_{Said::nothing};
};

// Those of this process.
inline RailNews& rail_news() {
  static RailNews all;
  return all;
}

}  // namespace seto::tcp
