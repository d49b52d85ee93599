#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace seto::tcp {

// How many bytes the sockets of a far link may have on their way together, and how fast they may send. Eight sockets that each
// fill their own send buffer hold several times what the link carries in a round trip: the queue before the link overflows, and
// every call pays for what is sent again. Pure: its caller looks once a round trip, while output is under way (decision 22).
class FlightLimit final {
 public:
  // Shorter links lose less than a wake-up costs.
  static constexpr std::uint32_t kLeastRoundTripUs = 10'000;
  // Parts of a round trip at the rate of the link. Enough for the delay of acknowledgements and of a thread that is late; the
  // queue before a link holds a round trip as a rule.
  static constexpr double kRoundTrips = 1.6;
  static constexpr double kDrained = 0.8;
  static constexpr double kPace = 1.25;
  // Besides what is on its way, each socket may hold a frame that the kernel paces. Without it a low rate could never rise:
  // at 3.5 MB/s a frame of 64 KiB takes a socket 106 ms, so that the limit alone lasted longer than a round trip.
  static constexpr std::uint64_t kPacedBytes = 512 << 10;
  // The rate is the median of so many samples: acknowledgements come in bunches, above all after a loss, and BBR stops sending
  // for some looks every ten seconds. The largest of them would be too large by half.
  static constexpr std::size_t kSamples = 9;
  static constexpr std::size_t kSamplesNeeded = 2;
  // A link that is held back and has no queue carries all that the limit lets through, so the limit is too low: it rises by this
  // factor with each two looks. Less than kHeld of the rate is no proof, because then something else held the sockets back.
  static constexpr double kRise = 1.5;
  static constexpr double kHeld = 0.9;
  // A round trip is short if only the link itself, and no queue, can be in it; long if the limit cannot explain it.
  static constexpr double kShort = 1.25;
  static constexpr double kLong = 2;
  static constexpr std::uint32_t kLongLooks = 4;
  static constexpr std::uint32_t kLooksToDrain = 8;           // at most: the first short round trip ends it
  static constexpr std::uint64_t kForgetNs = 10'000'000'000;  // also: the longest time without a short round trip
  // With less than this on its way, or less than this part of what has just arrived, a link is idle or runs empty: its round
  // trip, which the kernel smooths, may be long all the same. What a run of output sends first arrives a long round trip later,
  // so the first looks of a run tell nothing either. (Calls in which only this end received left rates of 1 Mbit/s behind.)
  static constexpr std::uint64_t kLeastInFlight = 128 << 10;
  static constexpr double kRunsEmpty = 0.5;
  static constexpr std::uint32_t kLooksToBegin = 2;
  // Looks that are further apart than so many round trips were not in one run of output.
  static constexpr double kInARow = 2;

  struct Look {
    std::uint64_t bytes = 0;          // that the peer has received since the last look
    std::uint64_t passed_ns = 0;      // since the last look
    std::uint32_t round_trip_us = 0;  // now, the shortest of the sockets; 0: unknown
    bool held_back = false;           // frames waited for this limit all the time
    std::uint64_t in_flight = 0;      // bytes that the kernel has and the peer has not acknowledged
    std::uint64_t now_ns = 0;
  };

  explicit FlightLimit(std::uint32_t round_trip_us) : base_us_(round_trip_us) {}

  void take(const Look& look);

  // 0: there is no limit.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // Bytes per second, of all sockets together; 0: as fast as they can.
  [[nodiscard]] double pace() const { return bytes_ == 0 ? 0 : kPace * rate_; }
  // Bytes per second as measured last, without what the limit adds to find out whether the link carries more; 0: unknown.
  [[nodiscard]] double measured() const { return measured_; }
  // How often that was measured.
  [[nodiscard]] std::uint64_t measurements() const { return measurements_; }
  // The round trip of the link itself, as far as it is known.
  [[nodiscard]] std::uint32_t base_us() const { return base_us_; }
  // As the last look shows it.
  [[nodiscard]] bool has_no_queue() const { return no_queue_; }

 private:
  void see_rate(const Look& look);
  [[nodiscard]] bool has_no_queue(const Look& look) const;
  void count(double rate);
  void see_round_trip(const Look& look);

  std::uint32_t base_us_;
  bool no_queue_ = false;
  std::uint64_t bytes_ = 0;
  double rate_ = 0;  // bytes per second; 0: unknown
  double measured_ = 0;
  std::uint64_t measurements_ = 0;
  Look before_;            // the last look, if it was of the same run of output
  std::uint32_t run_ = 0;  // looks one after another at which the link was not idle
  bool full_ = false;
  std::array<double, kSamples> kept_{};  // the latest samples, as a ring
  std::size_t samples_ = 0;              // since the rate was unknown
  double latest_ = 0;                    // sample
  std::uint64_t full_ns_ = 0;            // when the link was last full
  std::uint64_t short_ns_ = 0;           // when a round trip was last short
  std::uint32_t long_looks_ = 0;         // one after another
  std::uint32_t draining_ = 0;           // looks that are left of a drain
  double drain_rate_ = 0;                // the latest sample when it began, which a queue may have made lower than the rate
  std::uint32_t drained_us_ = 0;         // its shortest round trip; 0: none yet
};

}  // namespace seto::tcp
