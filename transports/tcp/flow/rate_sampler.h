#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/net/tcp_delivery.h"

namespace seto::tcp {

// Finds the rate of a link from what the kernel saw of its sockets while they had more to send than the link could carry. Pure:
// its caller reads the kernel and the clock, only while output is under way.
class RateSampler final {
 public:
  // Between two looks passes at least this time and at least a round trip. A look that comes much later ends a run: the link was
  // idle meanwhile.
  static constexpr std::uint64_t kIntervalNs = 10'000'000;
  // The first looks of a run tell nothing: what arrived meanwhile was sent a round trip before.
  static constexpr std::uint32_t kLooksToBegin = 2;
  static constexpr std::size_t kSamplesNeeded = 3;
  static constexpr std::size_t kSamplesKept = 5;
  static constexpr std::size_t kCarriedKept = 8;
  // Rates beyond these bounds are not believed.
  static constexpr double kLeastRate = 1e3;
  static constexpr double kLargestRate = 1e12;
  static constexpr std::uint32_t kLongestRoundTripUs = 10'000'000;
  // A first rate is not taken from a sample that exceeds it by this factor: the sockets still find out what the link carries.
  static constexpr double kRising = 1.25;

  struct Look {
    std::span<const std::optional<TcpDelivery>> sockets;  // absent: it is broken; all of them: the kernel does not tell
    bool ran_dry = false;                                 // since the last look sockets had nothing more to send
    std::uint64_t now_ns = 0;
    bool held_back = false;   // since the last look frames waited for the limit of bytes in flight, not for their sender
    std::size_t resting = 0;  // sockets that need not carry anything: absent or limited by the application
  };

  RateSampler(std::size_t sockets, std::uint32_t round_trip_us);

  [[nodiscard]] bool due(std::uint64_t now_ns) const { return now_ns - last_ns_ >= interval_ns_; }
  // True: the rate has changed.
  bool take(const Look& look);

  // Another socket takes the place of this one; its counters begin anew.
  void replace(std::size_t socket) { segments_[socket] = 0; }

  // Bytes per second: the median of the last samples. 0: unknown.
  [[nodiscard]] double rate() const { return rate_; }
  // Bytes per second that the link has carried at least, full or not: the most of the last looks, two at a time, because
  // acknowledgements come in bunches. 0: unknown.
  [[nodiscard]] double carried() const;
  // The shortest of the last look, in microseconds; 0: unknown.
  [[nodiscard]] std::uint32_t round_trip_us() const { return round_trip_us_; }
  [[nodiscard]] std::uint64_t samples() const { return samples_; }
  // The bytes that were delivered between the last two looks, full or not, and the time between them. 0: unknown.
  [[nodiscard]] std::uint64_t latest_bytes() const { return latest_bytes_; }
  [[nodiscard]] std::uint64_t latest_ns() const { return latest_ns_; }

 private:
  // Counts what was delivered since the last look; absent: unknown.
  std::optional<double> delivered(const Look& look);
  [[nodiscard]] double median() const;

  std::uint64_t interval_ns_;
  std::uint64_t last_ns_ = 0;
  std::uint32_t run_ = 0;                    // looks one after another at which the link was full
  std::vector<std::uint32_t> segments_;      // by socket, at the last look
  std::array<double, kSamplesKept> kept_{};  // the latest samples, as a ring
  std::uint64_t samples_ = 0;                // that counted, since the beginning
  double rate_ = 0;
  std::array<double, kCarriedKept> carried_{};  // of two looks each, as a ring
  std::size_t looks_ = 0;
  std::uint64_t latest_bytes_ = 0;
  std::uint64_t latest_ns_ = 0;
  std::uint32_t round_trip_us_ = 0;
};

}  // namespace seto::tcp
