#include "transports/tcp/flow/flight_limit.h"

#include <algorithm>
#include <utility>

namespace seto::tcp {

void FlightLimit::take(const Look& look) {
  no_queue_ = has_no_queue(look);
  see_rate(look);
  if (rate_ == 0) {
    bytes_ = 0;
    draining_ = long_looks_ = 0;
    short_ns_ = look.now_ns;
    return;
  }
  see_round_trip(look);
  const auto of_round_trip = [this](double rate) { return static_cast<std::uint64_t>(rate * base_us_ * 1e-6); };
  bytes_ = draining_ > 0 ? std::max(kPacedBytes, of_round_trip(kDrained * std::min(rate_, drain_rate_)))
                         : kPacedBytes + of_round_trip(kRoundTrips * rate_);
}

bool FlightLimit::has_no_queue(const Look& look) const {
  return look.round_trip_us != 0 && look.round_trip_us <= kShort * base_us_;
}

// A link is full where a queue has made the round trip longer: then it carries what it can. Where the limit has held frames back
// and there is no queue, it carries what the limit lets through. A sample is of two looks, because acknowledgements come in
// bunches.
void FlightLimit::see_rate(const Look& look) {
  if (look.now_ns - full_ns_ > kForgetNs) {
    rate_ = 0;
    samples_ = 0;
  }
  const bool in_a_row =
      look.passed_ns != 0 && static_cast<double>(look.passed_ns) <= kInARow * 1e3 * std::max(base_us_, look.round_trip_us);
  const Look before = std::exchange(before_, in_a_row ? look : Look{});
  const bool busy =
      look.in_flight >= kLeastInFlight && static_cast<double>(look.in_flight) >= kRunsEmpty * static_cast<double>(look.bytes);
  run_ = in_a_row && busy ? run_ + 1 : 0;
  const bool full = run_ > kLooksToBegin && (look.held_back || look.round_trip_us > kShort * base_us_);
  const bool full_twice = std::exchange(full_, full) && full;
  if (!full_twice) return;
  full_ns_ = look.now_ns;
  if (draining_ > 0 && has_no_queue(look)) return;  // what is low then is the limit
  const double sample =
      static_cast<double>(before.bytes + look.bytes) * 1e9 / static_cast<double>(before.passed_ns + look.passed_ns);
  if (rate_ == 0 || !has_no_queue(look) || !has_no_queue(before)) return count(sample);
  if (sample < kHeld * rate_) return;
  rate_ = std::max(sample, kRise * rate_);
  samples_ = 0;
  full_ = false;  // the next two looks tell what the higher limit does
}

void FlightLimit::count(double rate) {
  kept_[samples_++ % kSamples] = latest_ = rate;
  if (samples_ < kSamplesNeeded) return;
  std::array<double, kSamples> sorted = kept_;
  const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(samples_, kSamples));
  const auto middle = sorted.begin() + (end - sorted.begin()) / 2;
  std::nth_element(sorted.begin(), middle, end);
  rate_ = measured_ = *middle;
  ++measurements_;
}

// The limit itself keeps a queue before the link, so a round trip that has grown can be a slower link or a longer one. With less
// on the way the queue is empty, and what is left is the link.
void FlightLimit::see_round_trip(const Look& look) {
  const std::uint32_t now_us = look.round_trip_us;
  if (draining_ > 0) {
    if (now_us != 0 && (drained_us_ == 0 || now_us < drained_us_)) drained_us_ = now_us;
    const bool is_empty = drained_us_ != 0 && drained_us_ <= kShort * base_us_;
    if (!is_empty && --draining_ > 0) return;
    draining_ = 0;
    if (drained_us_ != 0) base_us_ = is_empty ? std::min(base_us_, drained_us_) : drained_us_;
    return;
  }
  if (now_us == 0) return;
  base_us_ = std::min(base_us_, now_us);
  if (now_us <= kShort * base_us_) short_ns_ = look.now_ns;
  long_looks_ = now_us > kLong * base_us_ ? long_looks_ + 1 : 0;
  if (long_looks_ < kLongLooks && look.now_ns - short_ns_ <= kForgetNs) return;
  short_ns_ = look.now_ns;
  long_looks_ = drained_us_ = 0;
  draining_ = kLooksToDrain;
  drain_rate_ = latest_;
}

}  // namespace seto::tcp
