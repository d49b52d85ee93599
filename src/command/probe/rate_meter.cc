#include "src/command/probe/rate_meter.h"

#include <algorithm>

namespace seto::command {
namespace {

constexpr double kLeastSeconds = 1.5;
constexpr double kRoundTripsToOpen = 10;
constexpr double kGrowth = 1.05;  // a rate that grows by more is still growing
constexpr double kCheckSeconds = 0.1;
// With fewer pieces than this in a part of a probe, all of them count.
constexpr std::ptrdiff_t kFewPieces = 6;

}  // namespace

void RateMeter::add(std::uint64_t bytes, double at_s) { arrivals_.push_back({at_s, this->bytes() + bytes}); }

bool RateMeter::done() {
  if (arrivals_.empty()) return false;
  if (seconds() >= kMostProbeSeconds || bytes() >= kMostProbeBytes) return true;
  if (seconds() < std::max(kLeastSeconds, 2 * kRoundTripsToOpen * round_trip_s_) || seconds() - checked_s_ < kCheckSeconds)
    return false;
  checked_s_ = seconds();
  return !rises();
}

bool RateMeter::rises() const {
  return !arrivals_.empty() && rate_within(2.0 / 3, 1) >= kGrowth * rate_within(1.0 / 3, 2.0 / 3) && rate_within(2.0 / 3, 1) > 0;
}

double RateMeter::bytes_per_second() const {
  if (arrivals_.empty()) return 0;
  const double opening = kRoundTripsToOpen * round_trip_s_ / std::max(seconds(), 1e-9);
  return rate_within(std::clamp(opening, 0.3, 0.5), 1);
}

// A message is in order although it came over several sockets, so a socket that lags holds up what the others have delivered:
// then pieces arrive late, and many at once. What has arrived after such a moment is what the link has carried until then. So the
// rate is taken between two such moments: those that lie highest above the mean rate, in the first and in the last third of the
// time.
double RateMeter::rate_within(double begin, double end) const {
  const auto at = [this](double part) {
    const double time = arrivals_.front().at_s + part * seconds();
    return std::lower_bound(arrivals_.begin(), arrivals_.end(), time,
                            [](const Arrival& one, double wanted) { return one.at_s < wanted; });
  };
  const auto first = at(begin);
  const auto last = end < 1 ? at(end) : arrivals_.end();
  if (last - first < kFewPieces) return slope(arrivals_.front(), arrivals_.back());
  const double mean = slope(*first, *(last - 1));
  const auto lies_lower = [mean](const Arrival& one, const Arrival& other) {
    return static_cast<double>(one.bytes) - mean * one.at_s < static_cast<double>(other.bytes) - mean * other.at_s;
  };
  const double third = (end - begin) / 3;
  const auto from = std::max_element(first, std::max(first + 1, at(begin + third)), lies_lower);
  const auto to = std::max_element(std::min(at(end - third), last - 1), last, lies_lower);
  return slope(*from, *to);
}

double RateMeter::slope(const Arrival& begin, const Arrival& end) {
  return end.at_s > begin.at_s ? static_cast<double>(end.bytes - begin.bytes) / (end.at_s - begin.at_s) : 0;
}

}  // namespace seto::command
