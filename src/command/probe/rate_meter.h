#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace seto::command {

// The limits of a probe of one link, in one direction. Sockets begin with some 100 KB in all and double what they send once a
// round trip, so after ten of them, 1 s at 100 ms, they carry what most links do; as long again is measured. 256 MB are 1 Gbit/s
// for two seconds. Where that is too little, because the link is longer or faster, rises() is true.
inline constexpr double kMostProbeSeconds = 2;
inline constexpr std::uint64_t kMostProbeBytes = 256'000'000;
inline constexpr std::uint64_t kProbePiece = 128 * 1024;

// The rate at which the pieces of a probe arrive. Sockets begin slowly, so the last part of a probe counts, 50 to 70 % of it, and
// the probe lasts until the rate does not grow any more.
class RateMeter final {
 public:
  explicit RateMeter(double round_trip_s) : round_trip_s_(round_trip_s) {}

  // A piece has arrived, at this time of a clock that does not jump.
  void add(std::uint64_t bytes, double at_s);
  // No more pieces are needed: the rate does not grow, or a limit is reached.
  [[nodiscard]] bool done();
  // The rate was still growing at the end.
  [[nodiscard]] bool rises() const;
  // Bytes per second of the last part; of all pieces after the first one, if these are few. 0: not enough pieces.
  [[nodiscard]] double bytes_per_second() const;
  [[nodiscard]] std::uint64_t bytes() const { return arrivals_.empty() ? 0 : arrivals_.back().bytes; }

 private:
  struct Arrival {
    double at_s = 0;
    std::uint64_t bytes = 0;  // of this and all earlier pieces
  };
  static double slope(const Arrival& begin, const Arrival& end);
  [[nodiscard]] double seconds() const { return arrivals_.back().at_s - arrivals_.front().at_s; }
  // The rate of the pieces that arrived between these parts of the time.
  [[nodiscard]] double rate_within(double begin, double end) const;

  const double round_trip_s_;
  std::vector<Arrival> arrivals_;
  double checked_s_ = 0;
};

}  // namespace seto::command
