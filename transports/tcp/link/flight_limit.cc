#include "transports/tcp/link/flight_limit.h"

#include <algorithm>

namespace seto::tcp {

void FlightLimit::take(const Look& look) {
  see_rate(look);
  if (rate_ == 0) {
    bytes_ = 0;
    draining_ = long_looks_ = 0;
    return;
  }
  see_round_trip(look);
  const double rate = draining_ > 0 ? kDrained * std::min(rate_, drain_rate_) : kRoundTrips * rate_;
  bytes_ = std::max(kLeastBytes, static_cast<std::uint64_t>(rate * base_us_ * 1e-6));
}

// A higher rate counts at once, a lower one when no look has seen more for a while. What was measured before a long pause says
// nothing: then the sockets find out again.
void FlightLimit::see_rate(const Look& look) {
  if (look.measured) measured_ns_ = look.now_ns;
  if (look.rate == 0 || look.now_ns - measured_ns_ > kForgetNs) {
    rate_ = 0;
    return;
  }
  if (rate_ == 0) short_ns_ = look.now_ns;
  if (look.rate >= rate_) {
    rate_ = look.rate;
    lower_looks_ = 0;
    return;
  }
  lower_rate_ = lower_looks_ == 0 ? look.rate : std::max(lower_rate_, look.rate);
  if (++lower_looks_ < kLooksOfARate) return;
  rate_ = lower_rate_;
  lower_looks_ = 0;
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
    if (drained_us_ != 0) base_us_ = drained_us_;
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
  drain_rate_ = look.rate;
}

}  // namespace seto::tcp
