#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/net/tcp_delivery.h"
#include "transports/connection.h"

namespace seto::tcp {

// A far link as traffic showed it, written by the holder of the token and read by any thread. The numbers that a reader gets may
// be of two looks, one after the other.
class SeenTraffic final {
 public:
  // After a look. `is_full`: it measured what the link carries.
  void take(double measured, bool is_full, double carried, std::uint64_t now_ns) {
    rate_.store(static_cast<std::uint64_t>(measured), std::memory_order_relaxed);
    carried_.store(static_cast<std::uint64_t>(carried), std::memory_order_relaxed);
    if (is_full) full_ns_.store(now_ns, std::memory_order_relaxed);
    seen_ns_.store(now_ns, std::memory_order_relaxed);
  }
  void take_round_trip(std::uint32_t round_trip_us) { round_trip_us_.store(round_trip_us, std::memory_order_relaxed); }

  [[nodiscard]] Connection::SendingRate get() const {
    return {rate_.load(std::memory_order_relaxed), full_ns_.load(std::memory_order_relaxed),
            carried_.load(std::memory_order_relaxed), seen_ns_.load(std::memory_order_relaxed),
            round_trip_us_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<std::uint64_t> rate_{0};
  std::atomic<std::uint64_t> full_ns_{0};
  std::atomic<std::uint64_t> carried_{0};
  std::atomic<std::uint64_t> seen_ns_{0};
  std::atomic<std::uint32_t> round_trip_us_{0};
};

// A socket of a link that is open, with what the kernel knows of it; absent if it does not measure it.
struct OpenSocket {
  std::size_t route = 0;
  std::optional<TcpDelivery> delivery;
  std::string way;  // way_of() the socket
};

// The ways that the sockets of a link have taken while they carried data, in their order. Any thread.
class TakenWays final {
 public:
  void add(const std::string& way) {
    const std::lock_guard lock(mutex_);
    if (ways_.size() < kMost && std::find(ways_.begin(), ways_.end(), way) == ways_.end()) ways_.push_back(way);
  }
  [[nodiscard]] std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return ways_;
  }

 private:
  static constexpr std::size_t kMost = 16;

  mutable std::mutex mutex_;
  std::vector<std::string> ways_;
};

}  // namespace seto::tcp
